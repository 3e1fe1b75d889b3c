"""The options of a loaded model as command-line options: declared once, for every command that loads one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

ENVIRONMENT_PREFIX = "NINFER_"


def _auto_or_count(value: str) -> str | int:
    """`auto` as it is, a number as a number; the engine knows the range."""
    if value == "auto":
        return value
    try:
        return int(value)
    except ValueError:
        raise typer.BadParameter(f"{value!r} is neither auto nor a whole number") from None


def _flag(name: str, help_text: str, **more: Any) -> Any:
    """`--name` with its environment variable; the command line outranks the variable."""
    return typer.Option(f"--{name}", envvar=environment_variable(name), help=help_text, **more)


def environment_variable(name: str) -> str:
    """NINFER_KV_DTYPE for `kv-dtype` and `kv_dtype`."""
    return ENVIRONMENT_PREFIX + name.replace("-", "_").upper()


def _pool(name: str, help_text: str) -> Any:
    return _flag(name, help_text, parser=_auto_or_count, metavar="auto|TOKENS")


@dataclass(frozen=True)
class EngineFlags:
    """Fields of `EngineOptions` under their own names, with its defaults."""

    device: Annotated[str, _flag("device", "Where the model computes: auto, cpu.")] = "auto"
    threads: Annotated[int | None, _flag("threads", "Compute threads; by default one per physical core.")] = None
    cpu_isa: Annotated[str, _flag("cpu-isa", "Instruction set: auto, scalar, avx2, avx512.")] = "auto"
    weights: Annotated[str, _flag("weights", "Storage of the weights: auto (as stored), f32, bf16, q8, q4.")] = "auto"
    kv_dtype: Annotated[str, _flag("kv-dtype", "Storage of keys and values: auto (bf16), f32, bf16, int8.")] = "auto"
    max_context: Annotated[
        int | None, _flag("max-context", "Longest conversation in tokens; by default the model's.")
    ] = None
    kv_capacity: Annotated[Any, _pool("kv-capacity", "Tokens that all pages of keys and values hold.")] = "auto"
    prefill_chunk: Annotated[Any, _pool("prefill-chunk", "Most prompt tokens of one unit of work.")] = "auto"
    chat_template: Annotated[Path | None, _flag("chat-template", "A template that replaces the model's.")] = None

    def as_options(self) -> dict[str, Any]:
        """Keyword arguments of `ninfer.load`."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


FLAG_NAMES = tuple(field.name for field in fields(EngineFlags))


def with_engine_flags(command: Callable[..., None]) -> Callable[..., None]:
    """`command` with one option per field of EngineFlags in place of its keyword argument `engine_flags`.

    The command-line parser reads options from the signature, so the signature is what changes.
    """

    @wraps(command)
    def with_flags(**arguments: Any) -> None:
        flags = EngineFlags(**{name: arguments.pop(name) for name in FLAG_NAMES})
        command(**arguments, engine_flags=flags)

    own = inspect.signature(command, eval_str=True).parameters.values()
    declared = inspect.signature(EngineFlags, eval_str=True).parameters.values()
    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in (*own, *declared)
        if parameter.name != "engine_flags"
    ]
    with_flags.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # functions accept it
    with_flags.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_flags
