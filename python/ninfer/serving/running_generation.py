"""Requests on their way through the engine, from the body to the last event."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial

from ninfer.engine.events import Cancelled, EngineEvent, Failed, Finished
from ninfer.engine.request import EngineRequest
from ninfer.errors import EngineFailedError, QueueFullError
from ninfer.serving.body_budget import BodyShare
from ninfer.serving.engine_port import EnginePort
from ninfer.serving.event_router import EventRouter
from ninfer.serving.generation_request import GenerationRequest
from ninfer.serving.work_threads import WorkThreads

CLIENT_LEFT = "the client left"
CLIENT_LAGS = "the client reads too slowly"


class RunningGeneration:
    """Life: submitted; iterate `batches`; `close`, always. Closing before the last event cancels the request."""

    def __init__(self, engine: EnginePort, router: EventRouter, request: GenerationRequest, request_id: int) -> None:
        self._engine = engine
        self._router = router
        self._events = router.claim(request_id)
        self._events.on_lag = lambda: engine.cancel(request_id, CLIENT_LAGS)
        self._id = request_id
        self._closed = False
        self.request = request
        # The engine's last word, once it was taken.
        self.outcome: Finished | Cancelled | Failed | None = None

    async def batches(self, silence_s: float) -> AsyncIterator[list[EngineEvent]]:
        """What came since the last batch, to the end; an empty batch after every `silence_s` seconds without events."""
        ended = False
        while not ended:
            batch = await self._events.take(silence_s)
            # It took everything, so what has ended by now has its last event in the batch.
            ended = self._events.ended
            if ended and isinstance(batch[-1], Finished | Cancelled | Failed):
                self.outcome = batch[-1]
            yield batch

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if not self._events.ended:
            self._engine.cancel(self._id, CLIENT_LEFT)
        self._router.release(self._id)


class Generations:
    """Starts generations. Translating, rendering, tokenising and submitting happen on its own two threads.

    limit: how many requests may be in preparation at once; more would only hold memory while they wait for a thread.
    timeout_s: see `request_timeout_s` of ServingOptions.
    """

    def __init__(self, engine: EnginePort, router: EventRouter, limit: int, timeout_s: float | None = None) -> None:
        self._engine = engine
        self._router = router
        self._limit = limit
        self._timeout_s = timeout_s
        self._preparing = 0
        self._threads = WorkThreads(2, "ninfer-prepare")

    async def start(
        self, translate: Callable[[], GenerationRequest], share: BodyShare, arrived: float
    ) -> RunningGeneration:
        """Raises what `translate` raises, and what the engine raises for a request it does not take.

        Whoever still prepares when the router closes is told that the engine has stopped, however long it would take.
        Its place, and the share of the body that `translate` holds, count until a thread is done with it. arrived: when
        the request came, in seconds of time.monotonic.
        """
        if self._preparing >= self._limit:
            raise QueueFullError(self._preparing, 1)
        self._preparing += 1
        share.hold()

        def gone() -> None:
            self._preparing -= 1
            share.let_go()

        job = self._threads.submit(partial(self._submitted, translate, arrived), gone, self._abandon)
        del translate
        closing = asyncio.ensure_future(self._router.closed.wait())
        try:
            await asyncio.wait((job.result, closing), return_when=asyncio.FIRST_COMPLETED)
            if not job.result.done():
                raise EngineFailedError("the engine has stopped")
        except (asyncio.CancelledError, EngineFailedError):
            self._threads.drop(job)
            raise
        finally:
            closing.cancel()
        request, request_id = job.result.result()
        return RunningGeneration(self._engine, self._router, request, request_id)

    def close(self) -> None:
        self._threads.close()

    def _submitted(self, translate: Callable[[], GenerationRequest], arrived: float) -> tuple[GenerationRequest, int]:
        request = translate()
        wanted = EngineRequest(
            prompt=request.prompt,
            params=request.params,
            arrived=arrived,
            timeout_s=self._timeout_s,
            report_progress=request.report_progress,
            cache=request.cache,
            boundaries=request.boundaries,
        )
        request_id = self._engine.submit(wanted)
        return request.submitted(), request_id

    def _abandon(self, submitted: tuple[GenerationRequest, int]) -> None:
        """The client left while its request was being submitted, so nobody else knows that it has to be cancelled."""
        _, request_id = submitted
        self._engine.cancel(request_id, CLIENT_LEFT)
        self._router.release(request_id)
