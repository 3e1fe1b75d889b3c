"""Loading a model with a progress bar."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from ninfer.cli.engine_flags import EngineFlags
from ninfer.engine.engine import Engine, load


def load_with_progress(path: Path, flags: EngineFlags) -> Engine:
    """`ninfer.load`, with a progress bar on stderr if that is a terminal."""
    options = flags.as_options()
    if not sys.stderr.isatty():
        return load(path, **options)
    columns = (TextColumn("loading"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("weights", total=None)
        return load(path, progress=lambda done, total: bar.update(task, completed=done, total=total), **options)
