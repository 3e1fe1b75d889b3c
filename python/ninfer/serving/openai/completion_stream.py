"""Writes one completion of a raw prompt, as a stream of chunks or whole."""

from __future__ import annotations

import time
from typing import Any

from ninfer.engine.events import Finished, PrefillProgress, TokenEvent
from ninfer.engine.output_session import TokenLogprob
from ninfer.engine.text_stream import TextStream
from ninfer.serving.accounting import accounting, prompt_progress
from ninfer.serving.answer_writer import Chunk
from ninfer.serving.generation_request import GenerationRequest
from ninfer.serving.openai.chat_stream import DONE
from ninfer.serving.openai.envelope import Envelope
from ninfer.serving.served_model import ServedModel
from ninfer.serving.token_logprobs import finite, token_text, written

_NO_LOGPROBS: dict[str, list[Any]] = {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}


class CompletionWriter:
    """Text as it comes. Logprobs cover every token but the end token; their offsets say how many characters of the
    answer stand before a token's text, so tokens that share a character, or have no text, share an offset."""

    done = DONE

    def __init__(self, request: GenerationRequest, model: ServedModel) -> None:
        self._request = request
        self._tokenizer = model.frontend.tokenizer
        self._envelope = Envelope.new("cmpl", "text_completion", request.model_name)
        # Only for an answer that does not stream.
        self._pieces: list[str] = []
        self._logprobs: dict[str, list[Any]] = {}
        # Stop strings hold text back, which moves no offset.
        self._text = TextStream(self._tokenizer, ())
        self._offset = 0
        self._finished: Finished | None = None
        self._started = time.monotonic()

    def opening(self) -> list[Chunk]:
        return []

    def progress(self, event: PrefillProgress) -> list[Chunk]:
        return [self._envelope.around([_choice("")], prompt_progress=prompt_progress(event, self._started))]

    def token(self, event: TokenEvent) -> list[Chunk]:
        logprobs = self._logprob(event)
        if not self._request.stream:
            self._pieces.append(event.text)
            self._collect(logprobs)
            return []
        return [self._envelope.around([_choice(event.text, logprobs)])] if event.text or logprobs else []

    def finished(self, event: Finished) -> list[Chunk]:
        self._finished = event
        cost = accounting(event)
        last = self._envelope.around([_choice("", None, event.finish_reason)], **cost)
        return [last, self._envelope.around([], **cost)] if self._request.include_usage else [last]

    def whole(self) -> Chunk:
        assert self._finished is not None, "an answer is whole once it has finished"
        logprobs = None if self._request.params.logprobs is None else {**_NO_LOGPROBS, **self._logprobs}
        choice = _choice("".join(self._pieces), logprobs, self._finished.finish_reason)
        return self._envelope.around([choice], **accounting(self._finished))

    def _logprob(self, event: TokenEvent) -> dict[str, list[Any]] | None:
        """Of one token."""
        chosen = event.logprob
        if chosen is None or self._request.ends_with(event.token_id, self._tokenizer.eos_ids):
            return None
        offset = self._offset
        self._offset += len(self._text.push(event.token_id))
        return {
            "tokens": [token_text(self._tokenizer, chosen.token_id)],
            "token_logprobs": [finite(chosen.logprob)],
            "top_logprobs": [self._top(chosen)],
            "text_offset": [offset],
        }

    def _collect(self, logprobs: dict[str, list[Any]] | None) -> None:
        for name, values in (logprobs or {}).items():
            kept = map(written, values) if name == "top_logprobs" else values
            self._logprobs.setdefault(name, []).extend(kept)

    def _top(self, chosen: TokenLogprob) -> dict[str, float]:
        """The protocol has one number per text; of tokens that look alike the most probable one is shown."""
        top: dict[str, float] = {}
        for token_id, logprob in (*chosen.top, (chosen.token_id, chosen.logprob)):
            top.setdefault(token_text(self._tokenizer, token_id), finite(logprob))
        return top


def _choice(text: str, logprobs: dict[str, Any] | None = None, finish_reason: str | None = None) -> dict[str, Any]:
    return {"index": 0, "text": text, "logprobs": logprobs, "finish_reason": finish_reason}
