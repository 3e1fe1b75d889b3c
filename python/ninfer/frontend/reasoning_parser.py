"""Splits an answer into what the model thought and what it says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

_OPEN, _CLOSE = "<think>", "</think>"


@dataclass(frozen=True)
class ReasoningDelta:
    """Text to append to either part; mostly only one of them is not empty."""

    reasoning: str = ""
    content: str = ""

    def __add__(self, other: ReasoningDelta) -> ReasoningDelta:
        return ReasoningDelta(self.reasoning + other.reasoning, self.content + other.content)


class _State(Enum):
    BEFORE = auto()  # nothing but white space yet: an opening marker may follow
    REASONING_START = auto()  # behind the opening marker: line breaks are dropped
    REASONING = auto()
    CONTENT_START = auto()  # behind the closing marker: line breaks are dropped
    CONTENT = auto()


def prompt_opens_reasoning(prompt: str) -> bool:
    """Whether the rendered prompt ends inside a reasoning block that the template opened for the model."""
    return prompt.rstrip().endswith(_OPEN)


class ReasoningParser:
    """Splits streamed text at `<think>` and `</think>`; the sums do not depend on how the text was cut.

    Line breaks at both ends of the reasoning and before the content belong to the format and are dropped; all other
    text is kept to the letter. Only the beginning of an answer can open reasoning. Without a closing marker the rest of
    the answer is reasoning.

    opened: the prompt already opened the block (`prompt_opens_reasoning`).
    """

    def __init__(self, *, opened: bool) -> None:
        self._state = _State.REASONING_START if opened else _State.BEFORE
        self._held = ""

    def push(self, text: str) -> ReasoningDelta:
        """What is certain now."""
        self._held += text
        delta = ReasoningDelta()
        while True:
            state = self._state
            delta += self._step()
            if state == self._state:
                return delta

    def flush(self) -> ReasoningDelta:
        """What was held back; the answer has ended."""
        held, self._held = self._held, ""
        if self._state in (_State.REASONING_START, _State.REASONING):
            return ReasoningDelta(reasoning=held.rstrip("\n"))
        return ReasoningDelta(content=held)

    def _step(self) -> ReasoningDelta:
        if self._state == _State.BEFORE:
            return self._before()
        if self._state in (_State.REASONING_START, _State.CONTENT_START):
            self._held = self._held.lstrip("\n")
            if self._held:
                reasoning = self._state == _State.REASONING_START
                self._state = _State.REASONING if reasoning else _State.CONTENT
            return ReasoningDelta()
        if self._state == _State.REASONING:
            return self._reasoning()
        content, self._held = self._held, ""
        return ReasoningDelta(content=content)

    def _before(self) -> ReasoningDelta:
        begun = self._held.lstrip()
        if begun.startswith(_OPEN):
            self._held = begun.removeprefix(_OPEN)
            self._state = _State.REASONING_START
        elif not _OPEN.startswith(begun):
            self._state = _State.CONTENT
        return ReasoningDelta()

    def _reasoning(self) -> ReasoningDelta:
        before, closed, after = self._held.partition(_CLOSE)
        if closed:
            self._held = after
            self._state = _State.CONTENT_START
            return ReasoningDelta(reasoning=before.rstrip("\n"))
        # Line breaks stay back as well: if the block closes behind them, they are none of its text.
        part = next((n for n in range(len(_CLOSE) - 1, 0, -1) if self._held.endswith(_CLOSE[:n])), 0)
        certain = self._held[: len(self._held) - part].rstrip("\n")
        self._held = self._held[len(certain) :]
        return ReasoningDelta(reasoning=certain)
