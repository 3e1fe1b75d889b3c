"""What follows a sampled unit: preview, native commit, accounting, and what is told."""

from __future__ import annotations

import math
from collections.abc import Callable

from ninfer import native
from ninfer.engine.events import EngineEvent, Failed, Finished, PrefillProgress, RequestTimings, TokenEvent
from ninfer.engine.loop_parts import LoopParts
from ninfer.engine.output_session import NOTHING_TO_PICK, FinishReason, GenerationStep
from ninfer.engine.request import Ending, Request, RequestState
from ninfer.engine.terminals import Terminals
from ninfer.resources.checkpoint_kind import CheckpointKind

_MAX_RETRY_SECONDS = 60
# How far one request moves the estimate of how long requests take.
_DURATION_SMOOTHING = 0.2


class Settlement:
    """interrupted: takes the mail and says which requests are to be broken off; break_off: does it; publish: tells what
    has happened. A row that was cancelled while its unit ran accepts nothing."""

    def __init__(
        self,
        parts: LoopParts,
        terminals: Terminals,
        interrupted: Callable[[], dict[Request, str]],
        break_off: Callable[[dict[Request, str]], None],
        publish: Callable[[], None],
    ) -> None:
        self._parts = parts
        self._terminals = terminals
        self._interrupted = interrupted
        self._break_off = break_off
        self._publish = publish
        self._mean_seconds = 0.0

    def settle(self, rows: list[Request], batch: native.PendingBatch) -> None:
        broken = self._interrupted()
        steps: list[GenerationStep | None] = []
        for row, token in zip(rows, batch.tokens, strict=True):
            rejected = token.id < 0 or row in broken
            steps.append(None if rejected else row.output.push(token))
        native.must(self._parts.program.commit(batch, [0 if step is None else 1 for step in steps]))
        now = self._parts.clock()
        for row, step in zip(rows, steps, strict=True):
            if step is not None:
                self._account(row, step, now)
            elif row not in broken:
                # What gives no finite logit is not worth going on from.
                self._terminals.end(row, Ending(RequestState.FAILED, [Failed(NOTHING_TO_PICK, "no_finite_logit")]))
        self._break_off(broken)
        self._publish()

    def _account(self, request: Request, step: GenerationStep, now: float) -> None:
        events: list[EngineEvent] = []
        prefilling = request.state is RequestState.PREFILLING
        if prefilling:
            request.first_token = now
            if request.report_progress:
                events.append(PrefillProgress(request.prefilled, request.prefilled, request.base))
        events.append(TokenEvent(step.token_id, step.text, step.logprob))
        if step.finish_reason is not None:
            events.append(self._finished(request, step.finish_reason, now))
            self._terminals.end(request, Ending(RequestState.FINISHED, events, CheckpointKind.SESSION_ENDPOINT))
            return
        if prefilling:
            self._parts.scheduler.start_decoding(request)
        self._parts.publisher.add(request, events)

    def _finished(self, request: Request, reason: FinishReason, now: float) -> Finished:
        computed: int = native.must(self._parts.program.sequence(request.open_sequence)).prompt_tokens_computed
        prompt_tokens = request.prompt.size
        timings = RequestTimings(
            prompt_n=computed,
            cache_n=prompt_tokens - computed,
            prompt_ms=(request.first_token - request.admitted) * 1e3,
            predicted_n=request.output.token_count,
            predicted_ms=(now - request.first_token) * 1e3,
            queue_ms=(request.admitted - request.arrived) * 1e3,
            planning_us=request.planning_us,
            max_tokens=request.plan.max_tokens,
        )
        self._note_duration(now - request.admitted)
        output = request.output
        return Finished(reason, timings, prompt_tokens, output.token_count, output.stop_string, request.reuse)

    def _note_duration(self, seconds: float) -> None:
        """A place is free again when the next of the running requests ends."""
        self._mean_seconds += _DURATION_SMOOTHING * (seconds - self._mean_seconds)
        wait = math.ceil(self._mean_seconds / max(self._parts.scheduler.running, 1))
        self._parts.intake.retry_after = min(max(wait, 1), _MAX_RETRY_SECONDS)
