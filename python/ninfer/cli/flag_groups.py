"""Command-line options that several commands share: declared once, as the fields of a dataclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Any

import typer

ENVIRONMENT_PREFIX = "NINFER_"


def flag(name: str, help_text: str, **more: Any) -> Any:
    """`--name` with its environment variable; the command line outranks the variable."""
    return typer.Option(f"--{name}", envvar=environment_variable(name), help=help_text, **more)


def count(name: str, help_text: str) -> Any:
    """As `flag`, for a whole number."""
    return flag(name, help_text, parser=whole_number, metavar="N")


def seconds(name: str, help_text: str) -> Any:
    """As `flag`, for a number of seconds."""
    return flag(name, help_text, parser=_number, metavar="SECONDS")


def whole_number(value: str | int) -> int:
    try:
        return int(value)
    except ValueError:
        raise typer.BadParameter(f"{value!r} is no whole number") from None


def auto_or_count(value: str) -> str | int:
    """`auto` as it is, a number as a number; the engine knows the range."""
    try:
        return value if value == "auto" else whole_number(value)
    except typer.BadParameter:
        raise typer.BadParameter(f"{value!r} is neither auto nor a whole number") from None


def _number(value: str | float) -> float:
    try:
        return float(value)
    except ValueError:
        raise typer.BadParameter(f"{value!r} is no number") from None


def switch(name: str, help_text: str) -> Any:
    """As `flag`, for yes and no: `--name` and `--no-name`."""
    return typer.Option(f"--{name}/--no-{name}", envvar=environment_variable(name), help=help_text)


def environment_variable(name: str) -> str:
    """NINFER_KV_DTYPE for `kv-dtype` and `kv_dtype`."""
    return ENVIRONMENT_PREFIX + name.replace("-", "_").upper()


def option_name(field: str) -> str:
    """--kv-dtype for `kv_dtype`."""
    return "--" + field.replace("_", "-")


def with_flags(**groups: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator: one option per field of each group in place of the command's keyword argument of the group's name.

    The command-line parser reads options from the signature, so the signature is what changes.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_groups(**arguments: Any) -> None:
            built = {
                name: group(**{field.name: arguments.pop(field.name) for field in fields(group)})
                for name, group in groups.items()
            }
            command(**arguments, **built)

        declared: list[Callable[..., Any]] = [command, *groups.values()]
        parameters = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for owner in declared
            for parameter in inspect.signature(owner, eval_str=True).parameters.values()
            if parameter.name not in groups
        ]
        with_groups.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # functions accept it
        with_groups.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return with_groups

    return decorate
