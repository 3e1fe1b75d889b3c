"""One lock per model name, held across processes."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(lock_file: Path, waiting: Callable[[], None]) -> Iterator[int]:
    """Holds the exclusive lock of `lock_file` and yields its descriptor; calls `waiting` once if another has it.

    A child process that inherits the descriptor keeps the lock until it ends too, so a download whose parent was
    killed cannot write beside the next one. The kernel drops the lock however the process ends.
    """
    lock_file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)
