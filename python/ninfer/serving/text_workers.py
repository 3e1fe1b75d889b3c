"""Work on text that computes nothing: tokenising, detokenising, rendering."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from ninfer.errors import QueueFullError
from ninfer.serving.body_budget import BodyShare
from ninfer.serving.work_threads import WorkThreads

Result = TypeVar("Result")
# Each of them holds a body, and waits for those before it.
MAX_WAITING = 16
_RETRY_SECONDS = 1


class TextWorkers:
    """One thread of its own, so that no flood of such requests delays those that generate. Lives on the event loop."""

    def __init__(self) -> None:
        self._threads = WorkThreads(1, "ninfer-text")
        self._waiting = 0

    async def run(self, work: Callable[[], Result], share: BodyShare) -> Result:
        """The result of `work`. Raises QueueFullError while MAX_WAITING others run or wait; cancelling it before it
        begins takes it out. Its place, and the share of the body that it holds, count until the thread is done with
        it."""
        if self._waiting >= MAX_WAITING:
            raise QueueFullError(self._waiting, _RETRY_SECONDS)
        self._waiting += 1
        share.hold()

        def gone() -> None:
            self._waiting -= 1
            share.let_go()

        job = self._threads.submit(work, gone)
        del work
        try:
            return await job.result
        except asyncio.CancelledError:
            self._threads.drop(job)
            raise

    def close(self) -> None:
        self._threads.close()
