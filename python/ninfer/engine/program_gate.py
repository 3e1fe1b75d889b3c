"""The program behind a lock: one thread computes at a time, and a closed engine computes no more."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ninfer import native


class ProgramGate:
    """Life: open until `close`; afterwards every use is a ValueError and the program's memory is free."""

    def __init__(self, program: native.Program) -> None:
        self._program: native.Program | None = program
        self._lock = threading.Lock()

    @property
    def closed(self) -> bool:
        return self._program is None

    @contextmanager
    def use(self) -> Iterator[native.Program]:
        """The program, for this thread alone. A batch that an error leaves pending is aborted on the way out."""
        with self._lock:
            if self._program is None:
                raise ValueError("the engine is closed")
            program = self._program
            try:
                yield program
            except BaseException:  # KeyboardInterrupt too: it may come between a unit and its commit
                program.abort_pending()
                raise

    def close(self) -> None:
        with self._lock:
            self._program = None
