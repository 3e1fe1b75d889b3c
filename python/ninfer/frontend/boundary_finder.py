"""Finds the boundaries of a rendered prompt, for any chat template, by rendering variations of the conversation.

What two renderings have in common is what two requests can share. Nothing here knows a template; one that refuses a
variation only loses the boundary that it would have shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ninfer.errors import RequestError
from ninfer.frontend.chat_prompt import ChatPrompt
from ninfer.frontend.message_starts import MessageStarts, Render
from ninfer.frontend.private_characters import unused_characters
from ninfer.frontend.prompt_boundaries import MessageBoundary, PromptBoundaries
from ninfer.frontend.segmented_text import SegmentedText
from ninfer.frontend.shared_beginning import common_length

_NEAR = 512
_LEADING_ROLES = ("system", "developer")
_SAFE = re.compile(r"(?<=[A-Za-z])(?= [A-Za-z])|(?<=\n)(?=\S)")


@dataclass(frozen=True)
class TextBoundaries:
    """Boundaries as places in the text, before it is known which of them are token frontiers; as PromptBoundaries."""

    messages: Mapping[int, int]
    tools_end: int | None
    leading_end: int | None
    turn_closure: int | None
    response_replay: int | None

    @property
    def places(self) -> list[int]:
        """All of them, unordered."""
        single = (self.tools_end, self.leading_end, self.turn_closure, self.response_replay)
        return [*self.messages.values(), *(place for place in single if place is not None)]

    def at(self, frontiers: Mapping[int, int]) -> PromptBoundaries:
        """Those that are token frontiers."""

        def frontier(place: int | None) -> int | None:
            return None if place is None else frontiers.get(place)

        exact = {frontiers[place]: index for index, place in self.messages.items() if place in frontiers}
        return PromptBoundaries(
            messages=tuple(MessageBoundary(tokens, index) for tokens, index in exact.items()),
            tools_end=frontier(self.tools_end),
            leading_end=frontier(self.leading_end),
            turn_closure=frontier(self.turn_closure),
            response_replay=frontier(self.response_replay),
        )


def find_boundaries(text: SegmentedText, prompt: ChatPrompt, render: Render) -> TextBoundaries:
    """prompt: normalised. render: as the text was rendered, at the same moment."""
    return _Finder(text, prompt, render).found()


class _Finder:
    def __init__(self, text: SegmentedText, prompt: ChatPrompt, render: Render) -> None:
        self._text = text
        self._prompt = prompt
        self._render = render
        self._starts = MessageStarts(text, prompt, render)
        self._messages = self._starts.places()
        self._other, self._answer = unused_characters(text.text, 2)
        roles = [message.get("role") for message in prompt.messages]
        self._leading = next((i for i, role in enumerate(roles) if role not in _LEADING_ROLES), len(roles))
        self._last_user = max((i for i, role in enumerate(roles) if role == "user"), default=None)

    def found(self) -> TextBoundaries:
        replay = self._response_replay()
        leading = self._leading_end()
        return TextBoundaries(
            messages=self._messages,
            tools_end=self._tools_end(leading),
            leading_end=leading,
            turn_closure=self._turn_closure(replay),
            response_replay=replay,
        )

    def _response_replay(self) -> int | None:
        text = self._text.text
        if self._prompt.add_generation_prompt:
            closed = self._rendered(self._prompt.messages)
            if closed is not None and len(closed) < len(text):
                shared = common_length(text, closed)
                return shared if shared == len(closed) else self._snapped(shared)
        return self._cut_back(len(text) - 1)

    def _turn_closure(self, replay: int | None) -> int | None:
        if self._last_user is None:
            return None
        turn = self._prompt.messages[: self._last_user + 1]
        later = self._rendered([*turn, _says("assistant", self._answer), _says("user", self._other)])
        if later is None:
            return None
        shared = common_length(self._text.text, later)
        answer = self._messages.get(len(turn), replay)
        return answer if answer is not None and answer <= shared else self._snapped(shared)

    def _leading_end(self) -> int | None:
        other = self._rendered([*self._prompt.messages[: self._leading], _says("user", self._other)])
        return None if other is None else self._snapped(common_length(self._text.text, other))

    def _tools_end(self, leading: int | None) -> int | None:
        end = self._starts.marked.tools_end
        if not self._prompt.tools or end is None or leading is None or leading < end:
            return None
        system = [{**message, "content": self._answer} for message in self._prompt.messages[: self._leading]]
        other = self._rendered([*system, _says("user", self._other)]) if system else None
        place = None if other is None else self._cut_back(common_length(self._text.text, other))
        return leading if place is None or place < end else place

    def _rendered(self, messages: Sequence[Mapping[str, Any]]) -> str | None:
        variation = replace(self._prompt, messages=messages, add_generation_prompt=False, continue_final_message=False)
        try:
            return self._render(variation)
        except RequestError:
            return None

    def _snapped(self, shared: int) -> int | None:
        """The beginning of the message in the opening of which the common text ends, else a frontier near that."""
        regions = self._starts.marked.regions
        for index, place in self._messages.items():
            if index in regions and place <= shared <= regions[index].start:
                return place
        return self._cut_back(shared)

    def _cut_back(self, shared: int) -> int | None:
        """The last place up to `shared` where the text can be cut, whatever follows after `shared`."""
        text, near = self._text.text, max(0, shared - _NEAR)
        edges = [edge for span in self._text.controls(near, shared) for edge in span]
        edges += [found.start() for found in _SAFE.finditer(text, near, shared) if found.start() + 2 <= shared]
        return max((edge for edge in edges if edge > 0), default=None)


def _says(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "content": content}
