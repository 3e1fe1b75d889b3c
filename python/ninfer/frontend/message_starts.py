"""Where in a rendered prompt each message begins, found without knowing the template.

A template puts a closing behind one message and an opening before the next. Marks tell where a message's own text
begins and ends; where in the *gap* between two such texts the next message begins, the template tells itself when only
the messages before it are rendered. Equal gaps are asked about once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from ninfer.errors import RequestError
from ninfer.frontend.chat_prompt import ChatPrompt
from ninfer.frontend.message_marks import MarkedRegion, MarkedText, MessageMarks
from ninfer.frontend.segmented_text import SegmentedText
from ninfer.frontend.shared_beginning import common_length

Render = Callable[[ChatPrompt], str]
_MOST_PROBES = 12
_LINES_END = re.compile(r"\n+(?=\S)")
_NOWHERE = MarkedText("", {}, None)


class MessageStarts:
    """Life: constructed, then `places`. Renders at most twice with marks, and a few beginnings of the conversation."""

    def __init__(self, text: SegmentedText, prompt: ChatPrompt, render: Render) -> None:
        self._text = text
        self._prompt = prompt
        self._render = render
        self._openings: dict[str, int | None] = {}
        self._probes = _MOST_PROBES
        # How many messages all probes may render together: about as many as two further renderings of everything.
        self._work = 2 * len(prompt.messages) + 8
        self._marks = MessageMarks(text.text)
        self._calls = True
        self.marked = self._marked()

    def places(self) -> dict[int, int]:
        """Where the messages of which it is known begin, by index; the first may begin the text."""
        found: dict[int, int] = {}
        last = 0
        for index in range(1, len(self._prompt.messages)):
            place = self._start(index)
            if place is not None and place > last:
                found[index] = last = place
        first = self._first(found)
        return found if first is None or first >= min(found.values(), default=first + 1) else {0: first, **found}

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

    def _first(self, others: Mapping[int, int]) -> int | None:
        """Where the first message begins, behind what the template puts before all messages."""
        regions = self.marked.regions
        place = self._beginning(0)
        if place is not None or 0 not in regions:
            return place
        text, end = self._text.text, regions[0].start
        openings = {text[place : regions[index].start] for index, place in others.items() if index in regions}
        return max((end - len(opening) for opening in openings if text.endswith(opening, 0, end)), default=None)

    def _start(self, index: int) -> int | None:
        region = self.marked.regions.get(index)
        before = self.marked.regions.get(index - 1)
        if region is None or before is None:
            return self._beginning(index)
        gap = self._text.text[before.end : region.start]
        if gap not in self._openings:
            closing = self._closing(index, before)
            place = self._guessed(before, region) if closing is None else self._split(before.end, region.start, closing)
            self._openings[gap] = None if place is None else region.start - place
        opening = self._openings[gap]
        return None if opening is None else region.start - opening

    def _closing(self, index: int, before: MarkedRegion) -> str | None:
        """What the template writes behind the own text of the message before `index` when nothing follows."""
        if not before.ends_known:
            return None
        rendered = self._rendered(self._marks.marked(self._beginning_of(index), calls=self._calls))
        if rendered is None:
            return None
        marked = self._marks.read(rendered)
        region = marked.regions.get(index - 1)
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
        before = self._rendered(self._beginning_of(index))
        return len(before) if before is not None and self._text.text.startswith(before) else None

    def _beginning_of(self, index: int) -> ChatPrompt:
        messages = self._prompt.messages[:index]
        return replace(self._prompt, messages=messages, add_generation_prompt=False, continue_final_message=False)

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
