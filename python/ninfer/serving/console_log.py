"""The console: one line per log record on stderr, written by a thread of its own."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ninfer.serving.background_writer import BackgroundWriter

_FORMAT = "%(asctime)s %(levelname)-7s %(message)s"
_CLOSE_S = 1.0


class ConsoleHandler(logging.Handler):
    """Formats where the record is made, writes elsewhere: a terminal that stands still stops no request."""

    def __init__(self, writer: BackgroundWriter) -> None:
        super().__init__()
        self._writer = writer
        self.setFormatter(logging.Formatter(_FORMAT))

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record) + "\n"
        except Exception:  # as every handler of the library: a broken record is reported, and hurts nobody
            self.handleError(record)
            return
        self._writer.put(lambda: _write(line))


@contextmanager
def console_log(level: str) -> Iterator[None]:
    """Within it, what this package logs from `level` on goes to stderr, and of everything else the warnings."""
    writer = BackgroundWriter("ninfer-console")
    handler = ConsoleHandler(writer)
    root, ours = logging.getLogger(), logging.getLogger("ninfer")
    root.addHandler(handler)
    ours.setLevel(level.upper())
    try:
        yield
    finally:
        root.removeHandler(handler)
        writer.close(_CLOSE_S)


def _write(line: str) -> None:
    # Nobody is left to be told that nobody reads.
    with suppress(OSError, ValueError):
        sys.stderr.write(line)
        sys.stderr.flush()
