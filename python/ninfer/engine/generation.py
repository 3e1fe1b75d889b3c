"""One request's computation: prefill in chunks, decode rounds, text as it becomes certain, the reason it ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ninfer import native
from ninfer.engine.sampling_params import SamplingParams, native_sampler
from ninfer.frontend.detokenizer import Detokenizer
from ninfer.frontend.stop_matcher import StopMatcher
from ninfer.frontend.tokenizer import Tokenizer

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True)
class TokenLogprob:
    """Log-probability of a chosen token, and the most probable ones beside it, best first: (token id, logprob)."""

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class GenerationStep:
    """What one step adds: the token it computed, and text that no later token can change (perhaps none)."""

    token_id: int
    text: str
    logprob: TokenLogprob | None
    finish_reason: FinishReason | None


@dataclass(frozen=True)
class GenerationTimings:
    """prompt_n: prompt tokens the native steps computed, by their own counter. Times in milliseconds."""

    prompt_n: int
    prompt_ms: float
    predicted_n: int
    predicted_ms: float


@dataclass(frozen=True)
class GenerationResult:
    """A finished output. token_ids holds every computed token, the end token too; text holds none of it and no stop."""

    token_ids: list[int]
    text: str
    finish_reason: FinishReason
    logprobs: list[TokenLogprob] | None
    timings: GenerationTimings


@dataclass(frozen=True)
class GenerationPlan:
    """A checked request: it fits the context, so once started it finishes."""

    prompt: list[int]
    params: SamplingParams
    max_tokens: int
    end_ids: frozenset[int]
    chunk: int


@dataclass
class Generation:
    """Life: iterate `steps()` to its end, or close it; then `result()`. The sequence is closed in every case."""

    program: native.Program
    tokenizer: Tokenizer
    plan: GenerationPlan
    _token_ids: list[int] = field(default_factory=list)
    _texts: list[str] = field(default_factory=list)
    _logprobs: list[TokenLogprob] = field(default_factory=list)
    _finish_reason: FinishReason | None = None
    _timings: GenerationTimings | None = None
    _samplers: dict[tuple[int, ...], native.Sampler] = field(default_factory=dict)

    def steps(self) -> Iterator[GenerationStep]:
        """Computes token by token; each step is final when it is yielded."""
        plan = self.plan
        reserved = len(plan.prompt) + plan.max_tokens
        sequence = native.must(self.program.open_sequence(reserved, plan.params.needs_counts))
        try:
            native.must(self.program.append(sequence, np.asarray(plan.prompt, np.int32)))
            yield from self._run(sequence)
        finally:
            native.must(self.program.close_sequence(sequence))

    def result(self) -> GenerationResult:
        assert self._finish_reason is not None, "the generation has not finished"
        assert self._timings is not None
        logprobs = None if self.plan.params.logprobs is None else list(self._logprobs)
        return GenerationResult(
            list(self._token_ids), "".join(self._texts), self._finish_reason, logprobs, self._timings
        )

    def _run(self, sequence: int) -> Iterator[GenerationStep]:
        text = _TextStream(self.tokenizer, self.plan)
        started = time.perf_counter()
        self._prefill(sequence)
        first_token = 0.0
        while self._finish_reason is None:
            batch = self._compute(sequence)
            token = batch.tokens[0]
            assert token.id >= 0, "the token mask allows no token"
            native.must(self.program.commit(batch, [1]))
            first_token = first_token or time.perf_counter()
            self._token_ids.append(token.id)
            step = self._step(text, token)
            if step.finish_reason is not None:
                self._finish(sequence, started, first_token, step.finish_reason)
            yield step

    def _prefill(self, sequence: int) -> None:
        left = len(self.plan.prompt)
        while left > self.plan.chunk:
            left -= native.must(self.program.prefill(sequence, self.plan.chunk))

    def _compute(self, sequence: int) -> native.PendingBatch:
        early = len(self._token_ids) < self.plan.params.min_tokens
        sampler = self._sampler(tuple(sorted(self.plan.end_ids)) if early else ())
        if not self._token_ids:
            return native.must(self.program.finish_prefill(sequence, sampler))
        return native.must(self.program.decode([(sequence, sampler)]))

    def _sampler(self, forbidden: tuple[int, ...]) -> native.Sampler:
        if forbidden not in self._samplers:
            vocab_size: int = self.program.vocab_size
            self._samplers[forbidden] = native_sampler(self.plan.params, vocab_size, forbidden)
        return self._samplers[forbidden]

    def _step(self, text: _TextStream, token: native.SampledToken) -> GenerationStep:
        ended = token.id in self.plan.end_ids
        piece = text.finish() if ended else text.push(token.id)
        finish: FinishReason | None = "stop" if ended or text.stopped else None
        if finish is None and len(self._token_ids) >= self.plan.max_tokens:
            piece += text.finish()
            finish = "length"
        logprob = None
        if self.plan.params.logprobs is not None:
            logprob = TokenLogprob(token.id, token.logprob, tuple(token.top_logprobs))
            self._logprobs.append(logprob)
        self._texts.append(piece)
        return GenerationStep(token.id, piece, logprob, finish)

    def _finish(self, sequence: int, started: float, first_token: float, reason: FinishReason) -> None:
        facts = native.must(self.program.sequence(sequence))
        self._finish_reason = reason
        self._timings = GenerationTimings(
            prompt_n=facts.prompt_tokens_computed,
            prompt_ms=(first_token - started) * 1e3,
            predicted_n=len(self._token_ids),
            predicted_ms=(time.perf_counter() - first_token) * 1e3,
        )


class _TextStream:
    """Tokens in, text out: whole characters only, and nothing that may turn out to begin a stop string."""

    def __init__(self, tokenizer: Tokenizer, plan: GenerationPlan) -> None:
        control = {token for token in (tokenizer.bos_id, tokenizer.pad_id) if token is not None}
        self._detokenizer = Detokenizer(tokenizer, hidden_ids=control | tokenizer.eos_ids)
        self._stops = StopMatcher(plan.params.stop)

    @property
    def stopped(self) -> bool:
        return self._stops.matched is not None

    def push(self, token_id: int) -> str:
        return self._stops.push(self._detokenizer.push(token_id))

    def finish(self) -> str:
        piece = self._stops.push(self._detokenizer.flush())
        return piece if self.stopped else piece + self._stops.flush()
