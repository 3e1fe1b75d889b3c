"""How errors read on the command line: one line, in the words that the user typed."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ninfer.cli import engine_flags, sampling_flags
from ninfer.cli.terminal_text import one_line
from ninfer.errors import CapacityError, NinferError, OptionError, RequestError

# Names of two words only: `threads` and `weights` are also plain English.
_FIELD = re.compile(r"\b(" + "|".join(name for name in engine_flags.FLAG_NAMES if "_" in name) + r")\b")


def error_line(error: NinferError | OSError, environment: Mapping[str, str]) -> str:
    """The line for stderr. Options have their command-line names, or that of the variable in `environment`."""
    return f"ninfer: {one_line(_message(error, environment))}"


def _message(error: NinferError | OSError, environment: Mapping[str, str]) -> str:
    if isinstance(error, OSError):
        names = [str(name) for name in (error.filename, error.filename2) if name is not None]
        return ": ".join([*names, error.strerror or str(error)])
    if isinstance(error, OptionError) and error.option in engine_flags.FLAG_NAMES:
        variable = engine_flags.environment_variable(error.option)
        value = str(error.value)
        name = variable if environment.get(variable) == value else _flag(error.option)
        return f"{name} {value} cannot be used: {error.works}"
    if isinstance(error, RequestError) and error.param in sampling_flags.FLAG_NAMES:
        return str(error).replace(error.param, _flag(error.param), 1)
    if isinstance(error, CapacityError):
        return _FIELD.sub(lambda field: _flag(field[0]), str(error))
    return str(error)


def _flag(field: str) -> str:
    return "--" + field.replace("_", "-")
