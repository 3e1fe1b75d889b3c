"""Conversations: what was said, and answers as they are computed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from ninfer.cli.turn_cost import TurnCost
from ninfer.frontend.reasoning_parser import ReasoningDelta

Message = dict[str, Any]


@dataclass(kw_only=True)
class Conversation(ABC):
    """Turns with a model, wherever it computes. A turn that is interrupted or refused leaves no trace in `messages`.

    beginning: the messages that every conversation starts with, also after `clear`. last: cost of the last finished
    turn.
    """

    beginning: list[Message] = field(default_factory=list)
    sampling: dict[str, Any] = field(default_factory=dict)
    template_kwargs: dict[str, Any] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    last: TurnCost | None = None

    def __post_init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forgets everything but the beginning."""
        self.messages = list(self.beginning)

    def say(self, text: str) -> Generator[ReasoningDelta]:
        """Adds the user's message and streams the answer. Closing the generator ends the answer where it computes.

        Raises what `_answer` raises.
        """
        messages = [*self.messages, {"role": "user", "content": text}]
        whole = ReasoningDelta()
        with closing(self._answer(messages)) as deltas:
            for delta in deltas:
                whole += delta
                yield delta
        self.messages = [*messages, _answer_message(whole)]

    @abstractmethod
    def _answer(self, messages: list[Message]) -> Generator[ReasoningDelta]:
        """Streams the answer to `messages`, then sets `last`."""


def _answer_message(answer: ReasoningDelta) -> Message:
    """The assistant's turn as later prompts show it."""
    message = {"role": "assistant", "content": answer.content}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    return message
