"""One conversation with a loaded model: what was said, and answers as they are computed."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from ninfer.engine.engine import Engine
from ninfer.engine.generation import Generation, GenerationResult
from ninfer.frontend.reasoning_parser import ReasoningDelta, ReasoningParser, prompt_opens_reasoning

Message = dict[str, Any]


@dataclass
class Answer:
    """A finished turn."""

    reasoning: str
    content: str
    prompt_tokens: int
    result: GenerationResult


@dataclass
class Conversation:
    """`say` adds the user's message and streams the answer; a turn that is interrupted or refused leaves no trace.

    beginning: the messages that every conversation starts with, also after `clear`.
    """

    engine: Engine
    beginning: list[Message] = field(default_factory=list)
    sampling: dict[str, Any] = field(default_factory=dict)
    template_kwargs: dict[str, Any] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    last: Answer | None = None

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
        answer = {"role": "assistant", "content": whole.content}
        if whole.reasoning:
            answer["reasoning_content"] = whole.reasoning
        self.messages = [*messages, answer]
        self.last = Answer(whole.reasoning, whole.content, tokens, generation.result())

    def _started(self, messages: list[Message]) -> tuple[str, int, Generation]:
        """The rendered prompt, its number of tokens, and a generation that has computed nothing yet."""
        prompt, ids = self.engine.chat_prompt_ids(messages, **self.template_kwargs)
        return prompt, len(ids), self.engine.start(ids, self.engine.sampling_params(**self.sampling))
