"""One boundary of the engine: cancellations, admission, one prefill unit, one decode round, publication."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ninfer import native
from ninfer.engine.deadlines import Deadlines
from ninfer.engine.events import (
    DEADLINE,
    Cancelled,
    EngineEvent,
    Failed,
    Finished,
    PrefillProgress,
    RequestTimings,
    TokenEvent,
)
from ninfer.engine.intake import Intake
from ninfer.engine.output_session import NOTHING_TO_PICK, FinishReason, GenerationStep
from ninfer.engine.publisher import Publisher
from ninfer.engine.request import Request, RequestState, move
from ninfer.engine.scheduler import Scheduler

_MAX_RETRY_SECONDS = 60
# How far one request moves the estimate of how long requests take.
_DURATION_SMOOTHING = 0.2


class StepLoop:
    """Runs on the engine's thread, the only writer of scheduler and program.

    What a unit computed is previewed as text, then committed, then accounted, and only then told. A row that was
    cancelled while its unit ran accepts nothing. Any exception out of `boundary` is an engine failure; what is pending
    or open then is ended by `fail`.
    """

    def __init__(
        self,
        program: native.Program,
        scheduler: Scheduler,
        intake: Intake,
        publisher: Publisher,
        clock: Callable[[], float],
    ) -> None:
        self._program = program
        self._scheduler = scheduler
        self._intake = intake
        self._publisher = publisher
        self._clock = clock
        self._deadlines = Deadlines()
        self._mean_seconds = 0.0
        self.statistics: native.ProgramStatistics = program.statistics()

    @property
    def idle(self) -> bool:
        """Whether a boundary would do nothing until there is mail."""
        return self._scheduler.idle

    def boundary(self) -> None:
        """Takes effect on every live request at least once, and returns after at most two model units."""
        self._break_off(self._interrupted())
        self._publish()
        self._admit()
        self._prefill_unit()
        self._decode_round()

    def cancel_all(self, reason: str) -> None:
        """Ends every live request."""
        self._interrupted()
        for request in self._intake.live():
            self._end(request, RequestState.CANCELLED, [Cancelled(reason)])
        self._publisher.flush()

    def fail(self, message: str) -> None:
        """After an exception: tells every live request and gives back what the program still lets go of."""
        requests = self._intake.live()
        for request in requests:
            if not request.ended:
                move(request, RequestState.FAILED)
            self._intake.forget(request)
            self._publisher.add(request, [Failed(message)])
        try:
            self._publisher.flush()
        finally:
            self._program.abort_pending()
            for request in requests:
                if request.sequence is not None:
                    self._program.close_sequence(request.sequence)
            self.statistics = self._program.statistics()

    def _interrupted(self) -> dict[Request, str]:
        """Takes the mail; the live requests that are to be broken off, with the reason."""
        broken: dict[Request, str] = {}
        mail = self._intake.take()
        for request in mail.submissions:
            self._scheduler.enqueue(request)
            self._deadlines.add(request)
        if mail.cancels:
            live = {request.id: request for request in self._intake.live()}
            broken = {live[name]: reason for name, reason in mail.cancels.items() if name in live}
        if self._deadlines.any:
            for request in self._deadlines.late(self._clock()):
                broken.setdefault(request, DEADLINE)
        return broken

    def _break_off(self, broken: dict[Request, str]) -> None:
        for request, reason in broken.items():
            self._end(request, RequestState.CANCELLED, [Cancelled(reason)])

    def _admit(self) -> None:
        request = self._scheduler.candidate()
        if request is None:
            return
        plan = request.plan
        opened = self._program.open_sequence(plan.reserved_tokens, plan.params.needs_counts)
        if isinstance(opened, native.Refusal):
            self._scheduler.refuse()
            return
        request.sequence = opened
        native.must(self._program.append(opened, np.asarray(plan.prompt, np.int32)))
        request.admitted = self._clock()
        self._scheduler.stage(request)
        self.statistics = self._program.statistics()

    def _prefill_unit(self) -> None:
        request = self._scheduler.staged
        if request is None:
            return
        total = len(request.plan.prompt)
        limit = self._scheduler.prefill_limit
        if total - request.prefilled > limit:
            request.prefilled += native.must(self._program.prefill(request.open_sequence, limit))
            if request.report_progress:
                self._publisher.add(request, [PrefillProgress(request.prefilled, total)])
                self._publish()
            return
        batch = native.must(self._program.finish_prefill(request.open_sequence, request.output.sampler))
        request.prefilled = total
        self._settle([request], batch)

    def _decode_round(self) -> None:
        rows = self._scheduler.decoding
        if not rows:
            return
        batch = native.must(self._program.decode([(row.open_sequence, row.output.sampler) for row in rows]))
        self._settle(list(rows), batch)

    def _settle(self, rows: list[Request], batch: native.PendingBatch) -> None:
        """Preview, native commit, accounting, publication of one sampled unit."""
        broken = self._interrupted()
        steps: list[GenerationStep | None] = []
        for row, token in zip(rows, batch.tokens, strict=True):
            rejected = token.id < 0 or row in broken
            steps.append(None if rejected else row.output.push(token))
        native.must(self._program.commit(batch, [0 if step is None else 1 for step in steps]))
        now = self._clock()
        for row, step in zip(rows, steps, strict=True):
            if step is not None:
                self._account(row, step, now)
            elif row not in broken:
                self._end(row, RequestState.FAILED, [Failed(NOTHING_TO_PICK, "no_finite_logit")])
        self._break_off(broken)
        self._publish()

    def _account(self, request: Request, step: GenerationStep, now: float) -> None:
        events: list[EngineEvent] = []
        prefilling = request.state is RequestState.PREFILLING
        if prefilling:
            request.first_token = now
            if request.report_progress:
                events.append(PrefillProgress(request.prefilled, request.prefilled))
        events.append(TokenEvent(step.token_id, step.text, step.logprob))
        if step.finish_reason is not None:
            events.append(self._finished(request, step.finish_reason, now))
            self._end(request, RequestState.FINISHED, events)
            return
        if prefilling:
            self._scheduler.start_decoding(request)
        self._publisher.add(request, events)

    def _finished(self, request: Request, reason: FinishReason, now: float) -> Finished:
        computed: int = native.must(self._program.sequence(request.open_sequence)).prompt_tokens_computed
        prompt_tokens = len(request.plan.prompt)
        timings = RequestTimings(
            prompt_n=computed,
            cache_n=prompt_tokens - computed,
            prompt_ms=(request.first_token - request.admitted) * 1e3,
            predicted_n=request.output.token_count,
            predicted_ms=(now - request.first_token) * 1e3,
            queue_ms=(request.admitted - request.arrived) * 1e3,
            planning_us=0,
            max_tokens=request.plan.max_tokens,
        )
        self._note_duration(now - request.admitted)
        return Finished(reason, timings, prompt_tokens, request.output.token_count, request.output.stop_string)

    def _note_duration(self, seconds: float) -> None:
        """A place is free again when the next of the running requests ends."""
        self._mean_seconds += _DURATION_SMOOTHING * (seconds - self._mean_seconds)
        wait = math.ceil(self._mean_seconds / max(self._scheduler.running, 1))
        self._intake.retry_after = min(max(wait, 1), _MAX_RETRY_SECONDS)

    def _end(self, request: Request, state: RequestState, events: list[EngineEvent]) -> None:
        """Gives back everything the request holds, then has its last events told."""
        self._scheduler.end(request, state)
        self._deadlines.drop(request)
        if request.sequence is not None:
            native.must(self._program.close_sequence(request.sequence))
            request.sequence = None
            self.statistics = self._program.statistics()
        self._intake.forget(request)
        self._publisher.add(request, events)

    def _publish(self) -> None:
        for request in self._publisher.flush():
            self._intake.cancel(request.id, "its receiver failed")
