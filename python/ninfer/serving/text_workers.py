"""Work on text that computes nothing: tokenising, detokenising, rendering."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ninfer.errors import QueueFullError

Result = TypeVar("Result")
# Each of them holds a body, and waits for those before it.
MAX_WAITING = 16
_RETRY_SECONDS = 1


class TextWorkers:
    """One thread of its own, so that no flood of such requests delays those that generate. Lives on the event loop."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ninfer-text")
        self._waiting = 0

    async def run(self, work: Callable[[], Result]) -> Result:
        """The result of `work`. Raises QueueFullError while MAX_WAITING others run or wait; cancelling it before it
        begins takes it out."""
        if self._waiting >= MAX_WAITING:
            raise QueueFullError(self._waiting, _RETRY_SECONDS)
        job = self._thread.submit(work)
        self._waiting += 1
        # It counts until the thread is done with it, whoever still waits for the answer.
        loop = asyncio.get_running_loop()
        job.add_done_callback(lambda _: loop.call_soon_threadsafe(self._one_less))
        return await asyncio.wrap_future(job)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _one_less(self) -> None:
        self._waiting -= 1
