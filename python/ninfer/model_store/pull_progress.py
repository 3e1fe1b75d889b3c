"""The progress bar of a download."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def pull_progress(name: str, total_bytes: int) -> Iterator[Callable[[int], None]]:
    """Shows a bar on stderr and yields the function that takes the bytes so far; filled when the block ends well."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(f"pulling {name}", total=total_bytes)
        yield lambda done: progress.update(task, completed=min(done, total_bytes))
        progress.update(task, completed=total_bytes)
