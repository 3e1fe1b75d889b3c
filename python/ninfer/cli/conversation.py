"""Conversations: what was said, and answers as they are computed."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, Protocol

from ninfer.cli.turn_cost import TurnCost, per_second
from ninfer.engine.engine import Engine
from ninfer.engine.generation import Generation, GenerationResult
from ninfer.frontend.reasoning_parser import ReasoningDelta, ReasoningParser, prompt_opens_reasoning

Message = dict[str, Any]


class Conversation(Protocol):
    """Turns with a model, wherever it computes. last: cost of the last finished turn."""

    last: TurnCost | None

    def clear(self) -> None:
        """Forgets everything but the beginning."""

    def say(self, text: str) -> Generator[ReasoningDelta]:
        """Adds the user's message and streams the answer. Raises RequestError or RemoteError."""


@dataclass
class LocalConversation:
    """With a loaded model. `say` adds the user's message and streams the answer; a turn that is interrupted or refused
    leaves no trace.

    beginning: the messages that every conversation starts with, also after `clear`.
    """

    engine: Engine
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

    def check(self) -> None:
        """Raises RequestError for what would refuse every turn: sampling values, no template, a system message."""
        self._started([*self.beginning, {"role": "user", "content": "hello"}])

    def say(self, text: str) -> Generator[ReasoningDelta]:
        """Raises RequestError if the conversation no longer fits."""
        messages = [*self.messages, {"role": "user", "content": text}]
        prompt, tokens, generation = self._started(messages)
        parser = ReasoningParser(opened=prompt_opens_reasoning(prompt))
        whole = ReasoningDelta()
        for step in generation.steps():
            delta = parser.push(step.text)
            whole += delta
            yield delta
        delta = parser.flush()
        whole += delta
        yield delta
        self.messages = [*messages, answer_message(whole)]
        self.last = _cost(tokens, generation.result())

    def _started(self, messages: list[Message]) -> tuple[str, int, Generation]:
        """The rendered prompt, its number of tokens, and a generation that has computed nothing yet."""
        prompt, ids = self.engine.chat_prompt_ids(messages, **self.template_kwargs)
        return prompt, len(ids), self.engine.start(ids, self.engine.sampling_params(**self.sampling))


def answer_message(answer: ReasoningDelta) -> Message:
    """The assistant's turn as later prompts show it."""
    message = {"role": "assistant", "content": answer.content}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    return message


def _cost(prompt_tokens: int, result: GenerationResult) -> TurnCost:
    timings = result.timings
    return TurnCost(
        prompt_tokens=prompt_tokens,
        cached=prompt_tokens - timings.prompt_n,
        computed=timings.prompt_n,
        answer_tokens=timings.predicted_n,
        finish_reason=result.finish_reason,
        prompt_rate=per_second(timings.prompt_n, timings.prompt_ms),
        answer_rate=per_second(timings.predicted_n, timings.predicted_ms),
    )
