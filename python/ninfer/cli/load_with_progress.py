"""Loading a model with a progress bar."""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from ninfer.cli.local_engine import LocalEngine
from ninfer.config.engine_options import EngineOptions


class LoadProgress:
    """While entered, `show(bytes done, bytes in all)` moves a bar on stderr if that is a terminal."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        if sys.stderr.isatty():
            columns = (TextColumn("loading"), BarColumn(), DownloadColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("weights", total=None)

    def show(self, done: int, total: int) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total)

    def __enter__(self) -> LoadProgress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def load_with_progress(path: Path, options: EngineOptions) -> LocalEngine:
    """An engine that computes, with a progress bar on stderr if that is a terminal. Raises what loading raises."""
    with LoadProgress() as bar:
        return LocalEngine.load(path, options, bar.show)
