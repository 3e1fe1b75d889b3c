"""Writes one completion in llama.cpp's own form, as a stream or whole."""

from __future__ import annotations

import time
from typing import Any

import orjson

from ninfer.engine.events import Finished, PrefillProgress, TokenEvent
from ninfer.serving.accounting import accounting, prompt_progress
from ninfer.serving.answer_writer import Chunk
from ninfer.serving.generation_request import GenerationRequest
from ninfer.serving.served_model import ServedModel
from ninfer.serving.token_logprobs import chat_logprob, written


class NativeCompletionWriter:
    """`tokens` holds every computed token but the end token."""

    done = b""

    def __init__(self, request: GenerationRequest, model: ServedModel) -> None:
        self._request = request
        self._tokenizer = model.frontend.tokenizer
        # Only for an answer that does not stream.
        self._pieces: list[str] = []
        self._tokens: list[int] = []
        self._probabilities: list[orjson.Fragment] = []
        self._finished: Finished | None = None
        self._started = time.monotonic()

    def opening(self) -> list[Chunk]:
        return []

    def progress(self, event: PrefillProgress) -> list[Chunk]:
        return [{**self._head("", [], stop=False), "prompt_progress": prompt_progress(event, self._started)}]

    def token(self, event: TokenEvent) -> list[Chunk]:
        ended = self._request.ends_with(event.token_id, self._tokenizer.eos_ids)
        tokens = [] if ended else [event.token_id]
        probabilities: list[dict[str, Any]] = []
        if event.logprob is not None and tokens:
            probabilities = [chat_logprob(self._tokenizer, event.logprob)]
        if not self._request.stream:
            self._pieces.append(event.text)
            self._tokens += tokens
            self._probabilities += map(written, probabilities)
            return []
        chunk = self._head(event.text, tokens, stop=False)
        if probabilities:
            chunk["completion_probabilities"] = probabilities
        return [chunk] if tokens or event.text else []

    def finished(self, event: Finished) -> list[Chunk]:
        self._finished = event
        return [self._last("", [], event)]

    def whole(self) -> Chunk:
        assert self._finished is not None, "an answer is whole once it has finished"
        last = self._last("".join(self._pieces), self._tokens, self._finished)
        if self._request.params.logprobs is not None:
            last["completion_probabilities"] = self._probabilities
        return last

    def _head(self, content: str, tokens: list[int], *, stop: bool) -> Chunk:
        return {"index": 0, "content": content, "tokens": tokens, "stop": stop, "id_slot": -1}

    def _last(self, content: str, tokens: list[int], event: Finished) -> Chunk:
        stop_type = "eos" if event.stop_string is None else "word"
        return {
            **self._head(content, tokens, stop=True),
            "model": self._request.model_name,
            "stop_type": "limit" if event.finish_reason == "length" else stop_type,
            "stopping_word": event.stop_string or "",
            "tokens_predicted": event.completion_tokens,
            "tokens_evaluated": event.prompt_tokens,
            "tokens_cached": event.timings.cache_n,
            "truncated": False,
            **accounting(event),
        }
