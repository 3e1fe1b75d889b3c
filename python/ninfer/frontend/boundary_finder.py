"""Finds the boundaries of a rendered prompt, for any chat template, by rendering variations of the conversation.

What two renderings have in common is what two requests can share. Nothing here knows a template; one that refuses a
variation only loses the boundary that it would have shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ninfer.errors import RequestError
from ninfer.frontend.chat_prompt import ChatPrompt, PromptMarker
from ninfer.frontend.message_starts import MessageStarts, Openings, Render
from ninfer.frontend.private_characters import unused_characters
from ninfer.frontend.prompt_boundaries import MessageBoundary, PromptBoundaries
from ninfer.frontend.segmented_text import SegmentedText
from ninfer.frontend.shared_beginning import common_length

_LEADING_ROLES = ("system", "developer")
# How far back a frontier may be from where a boundary ought to be, in characters; and how many are tried.
_NEAR = 256
_MOST_TRIED = 3
# A place, or those before it that will do if it is no frontier, the best first; none if there is no such boundary.
Places = tuple[int, ...]


@dataclass(frozen=True)
class TextBoundaries:
    """Boundaries as places in the text, before it is known which of them are token frontiers; as PromptBoundaries."""

    messages: Mapping[int, int]
    tools_end: Places
    leading_end: Places
    turn_closure: Places
    response_replay: Places
    turn_rewrite: Places
    markers: tuple[Places, ...]

    @property
    def places(self) -> list[int]:
        """All of them, unordered."""
        single = (self.tools_end, self.leading_end, self.turn_closure, self.response_replay, self.turn_rewrite)
        return [*self.messages.values(), *(place for places in (*single, *self.markers) for place in places)]

    def at(self, frontiers: Mapping[int, int]) -> PromptBoundaries:
        """Those that are token frontiers."""

        def frontier(places: Places) -> int | None:
            return next((frontiers[place] for place in places if place in frontiers), None)

        exact = {frontiers[place]: index for index, place in self.messages.items() if place in frontiers}
        marked = {found for found in map(frontier, self.markers) if found is not None}
        return PromptBoundaries(
            messages=tuple(MessageBoundary(tokens, index) for tokens, index in exact.items()),
            tools_end=frontier(self.tools_end),
            leading_end=frontier(self.leading_end),
            turn_closure=frontier(self.turn_closure),
            response_replay=frontier(self.response_replay),
            turn_rewrite=frontier(self.turn_rewrite),
            markers=tuple(sorted(marked)),
        )


def find_boundaries(text: SegmentedText, prompt: ChatPrompt, render: Render, learnt: Openings) -> TextBoundaries:
    """prompt: normalised. render: as the text was rendered, at the same moment. learnt: see MessageStarts."""
    return _Finder(text, prompt, render, MessageStarts(text, prompt, render, learnt)).found()


class _Finder:
    def __init__(self, text: SegmentedText, prompt: ChatPrompt, render: Render, starts: MessageStarts) -> None:
        self._text = text
        self._prompt = prompt
        self._render = render
        self._starts = starts
        self._messages = starts.places()
        self._other, self._answer = unused_characters(text.text, 2)
        roles = [message.get("role") for message in prompt.messages]
        self._leading = next((i for i, role in enumerate(roles) if role not in _LEADING_ROLES), len(roles))
        self._last_user = max((i for i, role in enumerate(roles) if role == "user"), default=None)

    def found(self) -> TextBoundaries:
        replay = self._response_replay()
        leading = self._leading_end()
        tools = self._tools_end(leading)
        return TextBoundaries(
            messages=self._messages,
            tools_end=self._places(tools),
            leading_end=self._places(leading),
            turn_closure=self._places(self._turn_closure(replay)),
            response_replay=self._places(replay),
            turn_rewrite=self._places(self._turn_rewrite(replay)),
            markers=tuple(self._places(self._marked(marker, tools, replay)) for marker in self._prompt.markers),
        )

    def _response_replay(self) -> int | None:
        text = self._text.text
        if self._prompt.add_generation_prompt:
            closed = self._rendered(self._prompt.messages)
            if closed is not None and len(closed) < len(text):
                shared = common_length(text, closed)
                return shared if shared == len(closed) else self._snapped(shared)
        return self._split_before(len(text) - 1)

    def _turn_closure(self, replay: int | None) -> int | None:
        if self._last_user is None:
            return None
        turn = self._prompt.messages[: self._last_user + 1]
        shared = self._shared([*turn, _says("assistant", self._answer), _says("user", self._other)])
        if shared is None:
            return None
        answer = self._messages.get(len(turn), replay)
        return answer if answer is not None and answer <= shared else self._snapped(shared)

    def _turn_rewrite(self, replay: int | None) -> int | None:
        messages = self._prompt.messages
        if self._last_user is None or replay is None or self._last_user + 1 == len(messages):
            return None
        shared = self._shared([*messages, _says("assistant", self._answer), _says("user", self._other)])
        place = None if shared is None or shared >= replay else self._snapped(shared)
        return place if place is not None and place > self._messages.get(self._last_user, 0) else None

    def _leading_end(self) -> int | None:
        shared = self._shared([*self._prompt.messages[: self._leading], _says("user", self._other)])
        return None if shared is None else self._snapped(shared)

    def _tools_end(self, leading: int | None) -> int | None:
        end = self._starts.marked.tools_end
        if not self._prompt.tools or end is None or leading is None or leading < end:
            return None
        system = [{**message, "content": self._answer} for message in self._prompt.messages[: self._leading]]
        shared = self._shared([*system, _says("user", self._other)]) if system else None
        place = None if shared is None else self._split_before(shared)
        return leading if place is None or place < end else place

    def _marked(self, marker: PromptMarker, tools: int | None, replay: int | None) -> int | None:
        if marker.message is None:
            return tools
        messages = self._prompt.messages
        content = messages[marker.message].get("content")
        if marker.part is None or not isinstance(content, list | tuple) or marker.part + 1 >= len(content):
            return self._messages.get(marker.message + 1, replay if marker.message + 1 == len(messages) else None)
        cut = {
            **messages[marker.message],
            "content": [*content[: marker.part + 1], {"type": "text", "text": self._other}],
        }
        shared = self._shared([*messages[: marker.message], cut])
        return None if shared is None else self._split_before(shared)

    def _shared(self, messages: Sequence[Mapping[str, Any]]) -> int | None:
        """How much the text has in common with another conversation; None if the template refuses that."""
        other = self._rendered(messages)
        return None if other is None else common_length(self._text.text, other)

    def _rendered(self, messages: Sequence[Mapping[str, Any]]) -> str | None:
        variation = replace(self._prompt, messages=messages, add_generation_prompt=False, continue_final_message=False)
        try:
            return self._render(variation)
        except RequestError:
            return None

    def _snapped(self, shared: int) -> int | None:
        """The beginning of the message in the opening of which the common text ends, else a place near that."""
        regions = self._starts.marked.regions
        for index, place in self._messages.items():
            if index in regions and place <= shared <= regions[index].start:
                return place
        return self._split_before(shared)

    def _split_before(self, shared: int) -> int | None:
        return next(iter(self._text.splits_before(shared, _NEAR)), None)

    def _places(self, place: int | None) -> Places:
        if not place:
            return ()
        if self._text.is_edge(place):
            return (place,)
        return (place, *self._text.splits_before(place, _NEAR)[:_MOST_TRIED])


def _says(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "content": content}
