"""How errors read on the command line: one line, in the words that the user typed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ninfer.cli.cache_flags import CACHE_FLAG_NAMES
from ninfer.cli.engine_flags import FLAG_NAMES
from ninfer.cli.flag_groups import environment_variable, option_name
from ninfer.cli.remote_flags import REMOTE_FLAG_NAMES
from ninfer.cli.sampling_flags import SAMPLING_FLAG_NAMES
from ninfer.cli.server_flags import SERVER_FLAG_NAMES
from ninfer.cli.terminal_text import one_line
from ninfer.errors import CapacityError, NinferError, OptionError, RequestError

_NAMES = (*FLAG_NAMES, *CACHE_FLAG_NAMES, *SERVER_FLAG_NAMES, *REMOTE_FLAG_NAMES)
# Names of two words only: `threads` and `weights` are also plain English.
_FIELD = re.compile(r"\b(" + "|".join(name for name in _NAMES if "_" in name) + r")\b")


def error_line(error: NinferError | OSError, environment: Mapping[str, str], arguments: Sequence[str]) -> str:
    """The line for stderr. An option has its command-line name, or that of the variable that its value came from."""
    return one_line(_message(error, environment, arguments))


def usage_line(error: Any) -> str:
    """The line for a malformed command line, or for a variable whose value is none. `error`: of the parser."""
    context, parameter = error.ctx, getattr(error, "param", None)
    if context is None or parameter is None or context.get_parameter_source(parameter.name).name != "ENVIRONMENT":
        return one_line(error.format_message())
    return one_line(f"{parameter.envvar}: {error.message}")


def _message(error: NinferError | OSError, environment: Mapping[str, str], arguments: Sequence[str]) -> str:
    if isinstance(error, OSError):
        names = [str(name) for name in (error.filename, error.filename2) if name is not None]
        return ": ".join([*names, error.strerror or str(error)])
    if isinstance(error, OptionError) and error.option in _NAMES:
        variable = environment_variable(error.option)
        from_variable = bool(environment.get(variable)) and not _given(option_name(error.option), arguments)
        name = variable if from_variable else option_name(error.option)
        return f"{name} {error.value} cannot be used: {_in_flags(error.works)}"
    if isinstance(error, RequestError) and error.param in SAMPLING_FLAG_NAMES:
        return str(error).replace(error.param, option_name(error.param), 1)
    return _in_flags(str(error)) if isinstance(error, CapacityError) else str(error)


def _given(option: str, arguments: Sequence[str]) -> bool:
    return any(argument == option or argument.startswith(f"{option}=") for argument in arguments)


def _in_flags(text: str) -> str:
    return _FIELD.sub(lambda field: option_name(field[0]), text)
