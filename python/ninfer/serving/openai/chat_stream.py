"""Writes one chat answer, as a stream of chunks or whole."""

from __future__ import annotations

import time
from typing import Any

import orjson

from ninfer.engine.events import Finished, PrefillProgress, TokenEvent
from ninfer.frontend.reasoning_parser import ReasoningDelta, ReasoningParser
from ninfer.serving.accounting import accounting, prompt_progress
from ninfer.serving.answer_writer import Chunk
from ninfer.serving.generation_request import GenerationRequest
from ninfer.serving.openai.envelope import Envelope
from ninfer.serving.served_model import ServedModel
from ninfer.serving.token_logprobs import chat_logprob, written

DONE = b"data: [DONE]\n\n"


class ChatWriter:
    """Reasoning goes to `reasoning_content`, the rest to `content`. Logprobs cover every token but the end token."""

    done = DONE

    def __init__(self, request: GenerationRequest, model: ServedModel) -> None:
        self._request = request
        self._tokenizer = model.frontend.tokenizer
        kind = "chat.completion.chunk" if request.stream else "chat.completion"
        self._envelope = Envelope.new("chatcmpl", kind, request.model_name)
        self._parser = ReasoningParser(opened=request.opens_reasoning)
        # Only for an answer that does not stream.
        self._answer: list[ReasoningDelta] = []
        self._logprobs: list[orjson.Fragment] = []
        self._finished: Finished | None = None
        self._started = time.monotonic()

    def opening(self) -> list[Chunk]:
        return [self._chunk({"role": "assistant", "content": ""})]

    def progress(self, event: PrefillProgress) -> list[Chunk]:
        return [{**self._chunk({}), "prompt_progress": prompt_progress(event, self._started)}]

    def token(self, event: TokenEvent) -> list[Chunk]:
        delta = self._parser.push(event.text)
        logprobs = self._logprob(event)
        if not self._request.stream:
            self._answer.append(delta)
            self._logprobs += map(written, logprobs)
            return []
        shown = _shown(delta)
        return [self._chunk(shown, logprobs)] if shown or logprobs else []

    def finished(self, event: Finished) -> list[Chunk]:
        self._finished = event
        rest = self._parser.flush()
        self._answer.append(rest)
        cost = accounting(event)
        last = {**self._chunk(_shown(rest), finish_reason=event.finish_reason), **cost}
        return [last, self._envelope.around([], **cost)] if self._request.include_usage else [last]

    def whole(self) -> Chunk:
        assert self._finished is not None, "an answer is whole once it has finished"
        message: dict[str, Any] = {"role": "assistant", "content": "".join(part.content for part in self._answer)}
        reasoning = "".join(part.reasoning for part in self._answer)
        if reasoning:
            message["reasoning_content"] = reasoning
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None if self._request.params.logprobs is None else {"content": self._logprobs},
            "finish_reason": self._finished.finish_reason,
        }
        return self._envelope.around([choice], **accounting(self._finished))

    def _chunk(
        self, delta: dict[str, Any], logprobs: list[dict[str, Any]] | None = None, finish_reason: str | None = None
    ) -> Chunk:
        choice = {
            "index": 0,
            "delta": delta,
            "logprobs": {"content": logprobs} if logprobs else None,
            "finish_reason": finish_reason,
        }
        return self._envelope.around([choice])

    def _logprob(self, event: TokenEvent) -> list[dict[str, Any]]:
        if event.logprob is None or self._request.ends_with(event.token_id, self._tokenizer.eos_ids):
            return []
        return [chat_logprob(self._tokenizer, event.logprob)]


def _shown(delta: ReasoningDelta) -> dict[str, Any]:
    parts = {"reasoning_content": delta.reasoning, "content": delta.content}
    return {name: text for name, text in parts.items() if text}
