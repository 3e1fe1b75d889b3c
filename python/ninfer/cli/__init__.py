"""The command line: `ninfer` and `ninfer-serve`."""

from __future__ import annotations

import signal
from types import FrameType


def main() -> None:
    """Entry point of the `ninfer` command."""
    # The import of the engine is not wanted by `import ninfer.cli`.
    from ninfer.cli.app import app
    from ninfer.cli.program import run_program

    run_program(app)


def serve() -> None:
    """Entry point of the `ninfer-serve` command."""
    # A server that is told to stop before it has begun ends as quietly as any other.
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, _stop)
    from ninfer.cli.program import run_program
    from ninfer.cli.serve_app import serve_app

    run_program(serve_app)


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)
