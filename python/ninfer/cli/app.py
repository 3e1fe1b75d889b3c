"""The `ninfer` command and how its errors end."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from ninfer.cli.chat import chat
from ninfer.cli.demo_flag import with_demo_value
from ninfer.cli.models import models_app
from ninfer.cli.run import run_prompt
from ninfer.errors import NinferError

app = typer.Typer(name="ninfer", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.command("chat")(chat)
app.command("run")(run_prompt)
app.add_typer(models_app, name="models")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ninfer {version('ninfer')}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """LLM server for one machine whose prompt cache works for hybrid models."""


def run() -> None:
    """Runs the command of `sys.argv`. An error that NInfer raises on purpose becomes one line and exit status 1."""
    try:
        app(args=with_demo_value(sys.argv[1:]))
    except NinferError as error:
        print(f"ninfer: {error}", file=sys.stderr)
        sys.exit(1)
