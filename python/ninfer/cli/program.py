"""Runs a command of `sys.argv` as a program: what the world does wrong is one line on stderr and exit status 1."""

from __future__ import annotations

import io
import os
import sys

import typer

from ninfer.cli.app_errors import error_line
from ninfer.cli.demo_flag import with_demo_value
from ninfer.errors import NinferError


def run_program(app: typer.Typer) -> None:
    """Ends the process with the command's exit status."""
    _accept_any_text()
    arguments = with_demo_value(sys.argv[1:])
    try:
        app(args=arguments)
    except (NinferError, OSError) as error:
        sys.stdout.flush()
        print(f"{app.info.name}: {error_line(error, os.environ, arguments)}", file=sys.stderr)
        sys.exit(1)


def _accept_any_text() -> None:
    """A stream whose encoding lacks a character gets a question mark for it, instead of ending the command."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
