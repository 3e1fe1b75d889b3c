"""The `ninfer` command and how its errors end."""

from __future__ import annotations

import io
import os
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from ninfer.cli.app_errors import error_line
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
    """Runs the command of `sys.argv`. What the world does wrong becomes one line on stderr and exit status 1."""
    _accept_any_text()
    try:
        app(args=with_demo_value(sys.argv[1:]))
    except (NinferError, OSError) as error:
        sys.stdout.flush()
        print(error_line(error, os.environ), file=sys.stderr)
        sys.exit(1)


def _accept_any_text() -> None:
    """A stream whose encoding lacks a character gets a question mark for it, instead of ending the command."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
