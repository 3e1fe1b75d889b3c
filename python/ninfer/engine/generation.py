"""One request's computation: prefill in chunks, decode rounds, text as it becomes certain, the reason it ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ninfer import native
from ninfer.engine.generation_plan import GenerationPlan
from ninfer.engine.output_session import NOTHING_TO_PICK, FinishReason, GenerationStep, OutputSession, TokenLogprob
from ninfer.engine.program_gate import ProgramGate
from ninfer.errors import CapacityError, RequestError
from ninfer.frontend.tokenizer import Tokenizer


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


class Generation:
    """Life: iterate `steps()` once, to its end or not; after its end, `result()`.

    The sequence is closed however the iteration ends. Raises CapacityError at its start if no lane or too few pages are
    free; once started it finishes.
    """

    def __init__(self, gate: ProgramGate, tokenizer: Tokenizer, plan: GenerationPlan) -> None:
        self._gate = gate
        self._plan = plan
        with gate.use() as program:
            vocab_size: int = program.vocab_size
        self._output = OutputSession(tokenizer, plan, vocab_size)
        self._token_ids: list[int] = []
        self._pieces: list[str] = []
        self._logprobs: list[TokenLogprob] = []
        self._started = False
        self._finish_reason: FinishReason | None = None
        self._timings: GenerationTimings | None = None

    def steps(self) -> Iterator[GenerationStep]:
        """Computes token by token; each step is final when it is yielded."""
        if self._started:
            raise ValueError("a generation runs only once")
        self._started = True
        sequence: int | None = None
        try:
            sequence = self._open()
            yield from self._run(sequence)
        finally:
            if sequence is not None and not self._gate.closed:
                with self._gate.use() as program:
                    native.must(program.close_sequence(sequence))

    def result(self) -> GenerationResult:
        """Raises ValueError before the last step."""
        if self._finish_reason is None or self._timings is None:
            raise ValueError("the generation has not finished")
        logprobs = None if self._plan.params.logprobs is None else list(self._logprobs)
        return GenerationResult(
            list(self._token_ids), "".join(self._pieces), self._finish_reason, logprobs, self._timings
        )

    def _open(self) -> int:
        with self._gate.use() as program:
            sequence = open_sequence(program, self._plan.reserved_tokens, self._plan.params.needs_counts)
            native.must(program.append(sequence, np.asarray(self._plan.prompt, np.int32)))
        return sequence

    def _run(self, sequence: int) -> Iterator[GenerationStep]:
        started = time.perf_counter()
        self._prefill(sequence)
        first_token = 0.0
        while self._finish_reason is None:
            token = self._next_token(sequence)
            first_token = first_token or time.perf_counter()
            step = self._step(token)
            if step.finish_reason is not None:
                self._finish(sequence, started, first_token, step.finish_reason)
            yield step

    def _prefill(self, sequence: int) -> None:
        left = len(self._plan.prompt)
        while left > self._plan.chunk:
            with self._gate.use() as program:
                left -= native.must(program.prefill(sequence, self._plan.chunk))

    def _next_token(self, sequence: int) -> native.SampledToken:
        """Computes and commits one token."""
        sampler = self._output.sampler
        with self._gate.use() as program:
            if self._token_ids:
                batch = native.must(program.decode([(sequence, sampler)]))
            else:
                batch = native.must(program.finish_prefill(sequence, sampler))
            token: native.SampledToken = batch.tokens[0]
            if token.id < 0:
                raise RequestError("prompt", NOTHING_TO_PICK)
            native.must(program.commit(batch, [1]))
        self._token_ids.append(token.id)
        return token

    def _step(self, token: native.SampledToken) -> GenerationStep:
        step = self._output.push(token)
        if step.logprob is not None:
            self._logprobs.append(step.logprob)
        self._pieces.append(step.text)
        return step

    def _finish(self, sequence: int, started: float, first_token: float, reason: FinishReason) -> None:
        with self._gate.use() as program:
            facts = native.must(program.sequence(sequence))
        self._finish_reason = reason
        self._timings = GenerationTimings(
            prompt_n=facts.prompt_tokens_computed,
            prompt_ms=(first_token - started) * 1e3,
            predicted_n=len(self._token_ids),
            predicted_ms=(time.perf_counter() - first_token) * 1e3,
        )


def open_sequence(program: native.Program, tokens: int, count_tokens: bool) -> int:
    """A sequence with room for `tokens` tokens; CapacityError if every lane is taken or too few pages are free."""
    result = program.open_sequence(tokens, count_tokens)
    if isinstance(result, native.Refusal):
        raise CapacityError(f"no room for a sequence of {tokens} tokens: {result}")
    return result
