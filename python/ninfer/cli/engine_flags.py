"""The options of a loaded model as command-line options: declared once, for every command that loads one."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from ninfer.cli.flag_groups import auto_or_count, count, flag


def _pool(name: str, help_text: str) -> Any:
    return flag(name, help_text, parser=auto_or_count, metavar="auto|TOKENS")


@dataclass(frozen=True)
class EngineFlags:
    """Fields of `EngineOptions` under their own names, with its defaults."""

    device: Annotated[str, flag("device", "Where the model computes: auto, cpu.", metavar="DEVICE")] = "auto"
    threads: Annotated[int | None, count("threads", "Compute threads; by default one per physical core.")] = None
    cpu_isa: Annotated[str, flag("cpu-isa", "Instruction set: auto, scalar, avx2, avx512.", metavar="SET")] = "auto"
    weights: Annotated[
        str, flag("weights", "Storage of the weights: auto (as stored), f32, bf16, q8, q4.", metavar="STORAGE")
    ] = "auto"
    kv_dtype: Annotated[
        str, flag("kv-dtype", "Storage of keys and values: auto (bf16), f32, bf16, int8.", metavar="STORAGE")
    ] = "auto"
    max_context: Annotated[
        int | None, count("max-context", "Longest conversation in tokens; by default the model's.")
    ] = None
    kv_capacity: Annotated[Any, _pool("kv-capacity", "Tokens that all pages of keys and values hold.")] = "auto"
    prefill_chunk: Annotated[Any, _pool("prefill-chunk", "Most prompt tokens of one unit of work.")] = "auto"
    chat_template: Annotated[
        Path | None, flag("chat-template", "A template that replaces the model's.", metavar="FILE")
    ] = None

    def as_options(self) -> dict[str, Any]:
        """Keyword arguments of `ninfer.load`."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


FLAG_NAMES = tuple(field.name for field in fields(EngineFlags))
