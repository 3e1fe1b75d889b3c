"""The options of a loaded model as command-line options, and loading with a progress bar."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from ninfer.engine.engine import Engine, load

Threads = Annotated[int | None, typer.Option(help="Compute threads; by default one per physical core.")]
CpuIsa = Annotated[str, typer.Option(help="Instruction set: auto, scalar, avx2, avx512.")]
Weights = Annotated[str, typer.Option(help="Storage of the weights: auto (as stored), f32, bf16, q8, q4.")]
KvDtype = Annotated[str, typer.Option(help="Storage of keys and values: auto (bf16), f32, bf16, int8.")]
MaxContext = Annotated[int | None, typer.Option(help="Longest conversation in tokens; by default the model's.")]
ChatTemplateFile = Annotated[Path | None, typer.Option("--chat-template", help="A template that replaces the model's.")]


def load_with_progress(path: Path, options: Mapping[str, Any]) -> Engine:
    """`ninfer.load`, with a progress bar on stderr if that is a terminal."""
    if not sys.stderr.isatty():
        return load(path, **options)
    columns = (TextColumn("loading"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("weights", total=None)
        return load(path, progress=lambda done, total: bar.update(task, completed=done, total=total), **options)
