"""The command line: `ninfer` and `ninfer-serve`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


def main() -> None:
    """Entry point of the `ninfer` command."""
    # The import of the engine is not wanted by `import ninfer.cli`.
    with _native_core_needed("ninfer"):
        from ninfer.cli.app import app
        from ninfer.cli.program import run_program

    run_program(app)


def serve() -> None:
    """Entry point of the `ninfer-serve` command."""
    # A server that is told to stop before it has begun ends as quietly as any other.
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, _stop)
    with _native_core_needed("ninfer-serve"):
        from ninfer.cli.program import run_program
        from ninfer.cli.serve_app import serve_app

    run_program(serve_app)


@contextmanager
def _native_core_needed(program: str) -> Iterator[None]:
    """No command works without it, `doctor` neither: the one line says what keeps it from being loaded."""
    try:
        yield
    except ImportError as error:
        if "ninfer._core" not in (error.name or "") and "_core" not in (error.path or ""):
            raise
        sys.exit(f"{program}: the native core of the package cannot be loaded: {error}")


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)
