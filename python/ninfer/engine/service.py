"""The engine behind a server: one worker thread that computes for everybody, and a bounded queue in front of it."""

from __future__ import annotations

import itertools
import logging
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ninfer.engine.events import Deliver, HandOver
from ninfer.engine.generation_plan import plan_generation
from ninfer.engine.intake import Intake
from ninfer.engine.loaded_model import LoadedModel
from ninfer.engine.output_session import OutputSession
from ninfer.engine.publisher import Publisher
from ninfer.engine.request import EngineRequest, Request, RequestState
from ninfer.engine.scheduler import Scheduler
from ninfer.engine.step_loop import StepLoop

_LOG = logging.getLogger(__name__)
# The worker wants the interpreter back right after a unit; Python's 5 ms would be a sixth of a decode round.
_SWITCH_SECONDS = 1e-4


@dataclass(frozen=True)
class EngineHealth:
    """reason: why it failed, or None."""

    state: Literal["starting", "ready", "failed", "stopped"]
    reason: str | None = None


@dataclass(frozen=True)
class RequestSnapshot:
    """One live request. prefilled: prompt tokens computed so far."""

    id: int
    state: RequestState
    prompt_tokens: int
    prefilled: int
    completion_tokens: int
    max_tokens: int


@dataclass(frozen=True)
class EngineSnapshot:
    """What the engine holds at one moment; requests in the order of their submission."""

    running: int
    queued: int
    lanes_total: int
    lanes_open: int
    pages_total: int
    pages_free: int
    requests: tuple[RequestSnapshot, ...]


class EngineService:
    """Life: made, `start`, ready, then failed (an exception in the worker) or stopped (`stop`); never started again.

    From `start` on, nothing else may use the model's program. `submit`, `cancel`, `health` and `snapshot` may be called
    from any thread. Requests submitted before `start` wait.
    """

    def __init__(
        self,
        model: LoadedModel,
        *,
        max_queued: int,
        hand_over: HandOver | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """max_queued: requests that may wait beside max_concurrency running ones. hand_over: see `submit`."""
        lanes = model.capacity.max_concurrency
        self._model = model
        self._hand_over = hand_over
        self._clock = clock
        self._ids = itertools.count(1)
        self._intake = Intake(lanes + max_queued)
        scheduler = Scheduler(lanes, model.prefill_chunk)
        self._loop = StepLoop(model.program, scheduler, self._intake, Publisher(hand_over), clock)
        self._thread = threading.Thread(target=self._work, name="ninfer-engine", daemon=True)
        self._health = EngineHealth("starting")
        self._switch_seconds = sys.getswitchinterval()

    @property
    def health(self) -> EngineHealth:
        return self._health

    def start(self) -> None:
        assert self._health.state == "starting", self._health
        self._switch_seconds = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_SECONDS)
        self._health = EngineHealth("ready")
        self._thread.start()

    def submit(self, request: EngineRequest, deliver: Deliver | None = None) -> int:
        """Checks the request and queues it; its id.

        Events come on the worker's thread: after every model unit either one call of the service's `hand_over` with the
        new events of all requests, or one call of `deliver` per request. They must not block. The first events of a
        request may come before this returns. Raises RequestError, QueueFullError, or EngineFailedError once the engine
        has failed or stopped.
        """
        if deliver is None and self._hand_over is None:
            raise ValueError("without hand_over a request needs its own deliver")
        arrived = self._clock() if request.arrived is None else request.arrived
        plan = plan_generation(self._model, request.prompt, request.params)
        output = OutputSession(self._model.frontend.tokenizer, plan, self._model.files.config.vocab_size)
        record = Request(
            id=next(self._ids),
            plan=plan,
            output=output,
            deliver=deliver,
            arrived=arrived,
            deadline=None if request.timeout_s is None else arrived + request.timeout_s,
            report_progress=request.report_progress,
            cache=request.cache,
        )
        self._intake.post(record)
        return record.id

    def cancel(self, request_id: int, reason: str) -> None:
        """Takes effect within one model unit, whatever the request's state; one that has ended is left alone."""
        self._intake.cancel(request_id, reason)

    def stop(self, timeout_s: float) -> None:
        """Ends every request with Cancelled("shutdown") and waits for the worker.

        Raises TimeoutError if the worker is still inside a model unit after `timeout_s` seconds.
        """
        self._intake.stop()
        if self._thread.ident is None:
            self._shut_down()
            return
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise TimeoutError(f"the engine is still computing after {timeout_s} s")
        sys.setswitchinterval(self._switch_seconds)

    def snapshot(self) -> EngineSnapshot:
        requests = tuple(_snapshot_of(request) for request in self._intake.live() if not request.ended)
        queued = sum(request.state is RequestState.QUEUED for request in requests)
        statistics = self._loop.statistics
        return EngineSnapshot(
            running=len(requests) - queued,
            queued=queued,
            lanes_total=statistics.lanes_total,
            lanes_open=statistics.lanes_open,
            pages_total=statistics.pages_total,
            pages_free=statistics.pages_free,
            requests=requests,
        )

    def _work(self) -> None:
        try:
            while not self._intake.stopping:
                if self._loop.idle:
                    self._intake.wait()
                self._loop.boundary()
            self._shut_down()
        except BaseException as error:  # whatever it is, every client is told and the server goes unhealthy
            _LOG.exception("the engine failed")
            self._fail(f"{type(error).__name__}: {error}")

    def _shut_down(self) -> None:
        self._intake.close("the engine has stopped")
        self._loop.cancel_all("shutdown")
        self._health = EngineHealth("stopped")

    def _fail(self, reason: str) -> None:
        self._health = EngineHealth("failed", reason)
        self._intake.close(f"the engine has failed: {reason}")
        try:
            self._loop.fail(f"the engine has failed: {reason}")
        except Exception:
            _LOG.exception("the failed engine could not be cleaned up")


def _snapshot_of(request: Request) -> RequestSnapshot:
    return RequestSnapshot(
        id=request.id,
        state=request.state,
        prompt_tokens=len(request.plan.prompt),
        prefilled=request.prefilled,
        completion_tokens=request.output.token_count,
        max_tokens=request.plan.max_tokens,
    )
