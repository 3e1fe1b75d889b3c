"""The engine behind a server: one worker thread that computes for everybody, and a bounded queue in front of it."""

from __future__ import annotations

import itertools
import logging
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ninfer import native
from ninfer.engine.catalog_view import CatalogView
from ninfer.engine.copies import CopyBudget
from ninfer.engine.events import Deliver, HandOver
from ninfer.engine.generation_plan import plan_generation
from ninfer.engine.intake import Intake
from ninfer.engine.loaded_model import LoadedModel
from ninfer.engine.loop_assembly import make_loop, make_parts
from ninfer.engine.output_session import OutputSession
from ninfer.engine.publisher import Publisher
from ninfer.engine.request import EngineRequest, Request, RequestState

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

    From `start` on, nothing else may use the model's program. `submit`, `cancel`, `health`, `snapshot` and `catalog`
    may be called from any thread. Requests submitted before `start` wait.
    """

    def __init__(
        self,
        model: LoadedModel,
        *,
        max_queued: int,
        hand_over: HandOver | None = None,
        clock: Callable[[], float] = time.monotonic,
        copy_budget: CopyBudget | None = None,
        planning: native.PlanningSession | None = None,
    ) -> None:
        """max_queued: requests that may wait beside max_concurrency running ones. hand_over: see `submit`. planning:
        for a model whose program is a stand-in for the one that it plans with."""
        lanes = model.capacity.max_concurrency
        self._model = model
        self._hand_over = hand_over
        self._clock = clock
        self._ids = itertools.count(1)
        self._intake = Intake(lanes + max_queued)
        parts = make_parts(model, self._intake, Publisher(hand_over), clock, copy_budget or CopyBudget())
        self._loop = make_loop(model, parts, planning)
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
        key = request.cache.key()
        tokens = np.asarray(plan.prompt, np.int32)
        record = Request(
            id=next(self._ids),
            plan=plan,
            output=output,
            prompt=native.PreparedPrompt(tokens, key.salt),
            unsalted=native.PreparedPrompt(tokens) if key.salt and key.reads else None,
            deliver=deliver,
            arrived=arrived,
            deadline=None if request.timeout_s is None else arrived + request.timeout_s,
            report_progress=request.report_progress,
            key=key,
            boundaries=request.boundaries,
            structural=request.cache.structural,
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

    def catalog(self, timeout_s: float) -> CatalogView:
        """What the prompt cache holds, between two model units: everything that was told has happened, and is in it.

        Waits for the engine, so not for an event loop's thread. Raises TimeoutError, or EngineFailedError.
        """
        return self.ask_catalog().result(timeout_s)

    def ask_catalog(self) -> Future[CatalogView]:
        """As `catalog`, for who cannot wait. Raises EngineFailedError, or the future does."""
        return self._intake.ask()

    def _work(self) -> None:
        try:
            while not self._intake.stopping:
                if self._loop.idle:
                    self._intake.wait()
                self._answer(self._intake.take_questions())
                self._loop.boundary()
            self._shut_down()
        except BaseException as error:  # whatever it is, every client is told and the server goes unhealthy
            _LOG.exception("the engine failed")
            self._fail(f"{type(error).__name__}: {error}")

    def _answer(self, questions: list[Future[CatalogView]]) -> None:
        """One look for all who ask: it takes milliseconds where many conversations are kept."""
        if not questions:
            return
        try:
            view = self._loop.view()
        except BaseException as error:
            for question in questions:
                question.set_exception(error)
            raise
        for question in questions:
            question.set_result(view)

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
