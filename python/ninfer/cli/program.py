"""Runs a command of `sys.argv` as a program: what goes wrong is one line on stderr.

Exit status 1 for what the world does wrong, 2 for a malformed command line, 130 for Ctrl-C.
"""

from __future__ import annotations

import io
import os
import sys
from typing import NoReturn

import typer

from ninfer.cli.app_errors import error_line, usage_line
from ninfer.cli.demo_flag import with_demo_value
from ninfer.errors import NinferError

# The parser's base class of everything that is wrong with a command line. Typer brings its own copy of the library
# that it comes from, or not, depending on its version.
USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]
_MALFORMED = 2
_INTERRUPTED = 130


def run_program(app: typer.Typer) -> None:
    """Ends the process with the command's exit status."""
    _accept_any_text()
    arguments = with_demo_value(sys.argv[1:])
    try:
        status = app(args=arguments, prog_name=app.info.name, standalone_mode=False)
    except USAGE_ERROR as error:
        _fail(app, usage_line(error), _MALFORMED)
    except typer.Abort:
        sys.exit(_INTERRUPTED)
    except (NinferError, OSError) as error:
        _fail(app, error_line(error, os.environ, arguments), 1)
    except MemoryError:
        _fail(app, "there is not enough memory", 1)
    sys.exit(status)


def _fail(app: typer.Typer, line: str, status: int) -> NoReturn:
    sys.stdout.flush()
    print(f"{app.info.name}: {line}", file=sys.stderr)
    sys.exit(status)


def _accept_any_text() -> None:
    """A stream whose encoding lacks a character gets a question mark for it, instead of ending the command."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
