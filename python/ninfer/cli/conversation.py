"""One conversation with a loaded model: what was said, and answers as they are computed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ninfer.engine.engine import Engine
from ninfer.engine.generation import GenerationResult
from ninfer.frontend.reasoning_parser import ReasoningDelta, ReasoningParser, prompt_opens_reasoning


@dataclass
class Answer:
    """A finished turn."""

    reasoning: str
    content: str
    prompt_tokens: int
    result: GenerationResult


@dataclass
class Conversation:
    """`say` adds the user's message and streams the answer; a turn that is interrupted or refused leaves no trace."""

    engine: Engine
    sampling: dict[str, Any] = field(default_factory=dict)
    template_kwargs: dict[str, Any] = field(default_factory=dict)
    messages: list[dict[str, Any]] = field(default_factory=list)
    last: Answer | None = None

    def say(self, text: str) -> Iterator[ReasoningDelta]:
        """Raises RequestError if the conversation no longer fits."""
        messages = [*self.messages, {"role": "user", "content": text}]
        prompt, ids = self.engine.chat_prompt_ids(messages, **self.template_kwargs)
        generation = self.engine.start(ids, self.engine.sampling_params(**self.sampling))
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
        self.last = Answer(whole.reasoning, whole.content, len(ids), generation.result())
