"""`--version`."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ninfer {version('ninfer')}")
        raise typer.Exit


VersionFlag = Annotated[
    bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
]
