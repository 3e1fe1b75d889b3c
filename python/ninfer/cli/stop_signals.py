"""SIGINT and SIGTERM: the first one stops the server in order, and the process ends whatever happens."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path

import uvicorn

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# The contract's five seconds, less what the system needs to take a large process down.
_LONGEST_STOP_S = 4.5


class StopSignals:
    """From its making on, the first signal sets `stopped` and lets the server end its answers; a second one, or 4.5
    seconds, end the process at once."""

    def __init__(self, loop: asyncio.AbstractEventLoop, server: uvicorn.Server) -> None:
        self._server = server
        self.stopped = asyncio.Event()
        for one in _SIGNALS:
            loop.add_signal_handler(one, self._stop, one)

    def _stop(self, number: signal.Signals) -> None:
        if self.stopped.is_set():
            end_process(128 + number)
        self.stopped.set()
        self._server.should_exit = True
        timer = threading.Timer(_LONGEST_STOP_S, end_process, (0,))
        timer.daemon = True
        timer.start()


def ignore_signals() -> None:
    for one in _SIGNALS:
        signal.signal(one, signal.SIG_IGN)


def end_process(status: int) -> None:
    """Without waiting for threads, and without taking the native core down under them: one of them may be inside a
    model unit, the loading of a file, a template or a download."""
    for child in _children():
        os.kill(child, signal.SIGTERM)
    os._exit(status)


def _children() -> list[int]:
    """Processes that this one started, such as the download of a model."""
    found: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        try:
            found += map(int, (task / "children").read_text().split())
        except OSError:
            continue
    return found
