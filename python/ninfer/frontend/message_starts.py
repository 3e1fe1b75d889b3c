"""Where in a rendered prompt each message begins, found without knowing the template.

A template puts a closing behind one message and an opening before the next. Marks tell where a message's own text
begins and ends; where in the *gap* between two such texts the next message begins, the template tells itself when only
the messages before it are rendered. Equal gaps are asked about once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ninfer.errors import RequestError
from ninfer.frontend.chat_prompt import ChatPrompt
from ninfer.frontend.message_marks import MarkedRegion, MarkedText, MessageMarks
from ninfer.frontend.segmented_text import SegmentedText
from ninfer.frontend.shared_beginning import common_length

Messages = Sequence[Mapping[str, Any]]
Render = Callable[[ChatPrompt], str]
# By role and the gap before a message: how many of the gap's last characters belong to the message.
Openings = dict[tuple[str, str], int]
_MOST_PROBES = 12
_MOST_LEARNT, _LONGEST_LEARNT = 256, 256
_LINES_END = re.compile(r"\n+(?=\S)")
_NOWHERE = MarkedText("", {}, None)


class MessageStarts:
    """Life: constructed, then `places`. Renders at most twice with marks, and a few beginnings of the conversation.

    learnt: kept between prompts of the same template; nothing in it was written by a request.
    """

    def __init__(self, text: SegmentedText, prompt: ChatPrompt, render: Render, learnt: Openings) -> None:
        self._text = text
        self._prompt = prompt
        self._render = render
        self._learnt = learnt
        self._openings: dict[str, int | None] = {}
        self._known_openings = {(role, gap[len(gap) - length :]) for (role, gap), length in learnt.items()}
        self._probes = _MOST_PROBES
        # How many messages all probes may render together: about as many as two further renderings of everything.
        self._work = 2 * len(prompt.messages) + 8
        self._marks = MessageMarks(text.text)
        self._calls = True
        self.marked = self._marked()

    def places(self) -> dict[int, int]:
        """Where the messages of which it is known begin, by index, ascending; the first may begin the text."""
        places = {index: self._start(index) for index in range(1, len(self._prompt.messages))}
        found: dict[int, int] = {}
        last = -1
        for index in range(len(self._prompt.messages)):
            place = places.get(index)
            if place is None:
                place = self._opened(index)
            if place is None and index == 0:
                place = self._beginning(0)
            if place is not None and place > last:
                found[index] = last = place
        return found

    def _marked(self) -> MarkedText:
        for self._calls in (True, False):
            try:
                rendered = self._render(self._marks.marked(self._prompt, calls=self._calls))
            except RequestError:
                continue
            marked = self._marks.read(rendered)
            if marked.text == self._text.text:
                return marked
        return _NOWHERE

    def _start(self, index: int) -> int | None:
        region = self.marked.regions.get(index)
        before = self.marked.regions.get(index - 1)
        if region is None or before is None:
            return self._beginning(index)
        gap = self._text.text[before.end : region.start]
        opening = self._openings[gap] if gap in self._openings else self._opening(gap, index, before, region)
        self._openings[gap] = opening
        return None if opening is None else region.start - opening

    def _opening(self, gap: str, index: int, before: MarkedRegion, region: MarkedRegion) -> int | None:
        """How much of the gap belongs to the message behind it."""
        role = self._role(index)
        opening = self._learnt.get((role, gap))
        if opening is not None:
            return opening
        closing = self._closing(self._prompt.messages[:index], before)
        place = self._guessed(before, region) if closing is None else self._split(before.end, region.start, closing)
        opening = None if place is None else region.start - place
        if closing is not None and opening == len(gap) - len(closing) and before.ends_known and region.begins_known:
            self._learn(role, gap, opening)
        return opening

    def _opened(self, index: int) -> int | None:
        """Where a message begins if what stands before its text is how others of its role are opened."""
        region = self.marked.regions.get(index)
        if region is None or not region.begins_known:
            return None
        role = self._role(index)
        if role == "user" and not any(known == role for known, _ in self._known_openings):
            self._ask_for_users()
        fitting = [
            len(opening)
            for known, opening in self._known_openings
            if known == role and opening and self._text.text.endswith(opening, 0, region.start)
        ]
        return region.start - min(fitting) if fitting else None

    def _ask_for_users(self) -> None:
        """Learns how a message of the user is opened, from a conversation of our own."""
        turns = [{"role": role, "content": "a"} for role in ("user", "assistant", "user")]
        rendered = self._rendered(self._marks.marked(self._of(turns), calls=True))
        if rendered is None:
            return
        marked = self._marks.read(rendered)
        if len(marked.regions) == len(turns):
            gap = marked.text[marked.regions[1].end : marked.regions[2].start]
            closing = self._closing(turns[:2], marked.regions[1])
            if closing is not None and gap.startswith(closing):
                self._learn("user", gap, len(gap) - len(closing))

    def _learn(self, role: str, gap: str, opening: int) -> None:
        self._known_openings.add((role, gap[len(gap) - opening :]))
        if len(gap) <= _LONGEST_LEARNT and len(self._learnt) < _MOST_LEARNT:
            self._learnt[role, gap] = opening

    def _closing(self, messages: Messages, before: MarkedRegion) -> str | None:
        """What the template writes behind the own text of the last of these messages when nothing follows."""
        if not before.ends_known:
            return None
        rendered = self._rendered(self._marks.marked(self._of(messages), calls=self._calls))
        if rendered is None:
            return None
        marked = self._marks.read(rendered)
        region = marked.regions.get(len(messages) - 1)
        return None if region is None or not region.ends_known else marked.text[region.end :]

    def _split(self, start: int, end: int, closing: str) -> int:
        """Where a gap no longer is the closing of the message before it."""
        gap = self._text.text[start:end]
        shared = common_length(gap, closing)
        if shared == len(closing):
            return start + shared
        controls = self._text.controls(start, end)
        return max((edge for span in controls for edge in span if edge <= start + shared), default=start)

    def _beginning(self, index: int) -> int | None:
        """Where the template ends the messages before `index`, if the whole text begins like that."""
        before = self._rendered(self._of(self._prompt.messages[:index]))
        return len(before) if before is not None and self._text.text.startswith(before) else None

    def _of(self, messages: Messages) -> ChatPrompt:
        return replace(self._prompt, messages=messages, add_generation_prompt=False, continue_final_message=False)

    def _role(self, index: int) -> str:
        return str(self._prompt.messages[index].get("role"))

    def _rendered(self, prompt: ChatPrompt) -> str | None:
        if self._probes == 0 or self._work < len(prompt.messages):
            return None
        self._probes -= 1
        self._work -= len(prompt.messages)
        try:
            return self._render(prompt)
        except RequestError:
            return None

    def _guessed(self, before: MarkedRegion, region: MarkedRegion) -> int | None:
        """For templates that refuse the beginning of a conversation. Most close a message with a control token and open
        the next with another."""
        text, start, end = self._text.text, before.end, region.start
        controls = self._text.controls(start, end)
        if len(controls) >= 2:
            return controls[1][0]
        if controls:
            [(first, behind)] = controls
            closes = not text[start:first].strip() and text[behind:end].strip()
            return behind if closes else first
        if not before.ends_known:
            return None
        line = _LINES_END.search(text, start, end)
        return start if line is None else line.end()
