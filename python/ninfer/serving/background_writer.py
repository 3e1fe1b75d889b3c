"""Writes without making anybody wait: a thread with a bounded queue in front of a file, a pipe or a terminal."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

_MOST_WAITING = 4096


class BackgroundWriter:
    """Runs jobs one after the other, in order. A job that finds the queue full is dropped: the receiver has stopped
    reading, and neither memory nor requests may pay for that."""

    def __init__(self, name: str) -> None:
        self._jobs: queue.Queue[Callable[[], None] | None] = queue.Queue(_MOST_WAITING)
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def put(self, job: Callable[[], None]) -> bool:
        """Whether the job was taken. It must not raise."""
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            return False
        return True

    def close(self, timeout_s: float) -> bool:
        """Whether everything is written after at most `timeout_s` seconds."""
        deadline = time.monotonic() + timeout_s
        try:
            self._jobs.put(None, timeout=timeout_s)
        except queue.Full:
            return False
        self._thread.join(max(deadline - time.monotonic(), 0.0))
        return not self._thread.is_alive()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
