"""`--version`."""

from __future__ import annotations

from typing import Annotated

import typer

from ninfer.cli.package_version import package_version


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ninfer {package_version()}")
        raise typer.Exit


VersionFlag = Annotated[
    bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
]
