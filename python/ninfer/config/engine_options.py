"""The options of a loaded model: as on the command line, dashes as underscores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from ninfer.errors import OptionError

CpuIsa = Literal["auto", "scalar", "avx2", "avx512"]
WeightsOption = Literal["auto", "f32", "bf16", "q8", "q4"]
KvDtypeOption = Literal["auto", "f32", "bf16", "int8"]
Device = Literal["auto", "cpu", "cuda"]

MAX_CONCURRENCY = 8


@dataclass(frozen=True)
class EngineOptions:
    """`None` and "auto" mean: resolved at load from the machine and the model.

    threads: compute threads (physical cores). kv_capacity: tokens in all KV pages. max_context: longest sequence,
    prompt and output, in tokens. prefill_chunk: most tokens of one prefill unit. default_max_tokens: output tokens of
    a request that names no limit. chat_template: a file that replaces the model's own template.
    """

    device: Device = "auto"
    threads: int | None = None
    cpu_isa: CpuIsa = "auto"
    weights: WeightsOption = "auto"
    kv_dtype: KvDtypeOption = "auto"
    max_context: int | None = None
    kv_capacity: int | Literal["auto"] = "auto"
    max_concurrency: int = 4
    prefill_chunk: int | Literal["auto"] = "auto"
    default_max_tokens: int = 4096
    chat_template: Path | None = None

    def __post_init__(self) -> None:
        _check_choice("device", self.device, get_args(Device))
        _check_choice("cpu_isa", self.cpu_isa, get_args(CpuIsa))
        _check_choice("weights", self.weights, get_args(WeightsOption))
        _check_choice("kv_dtype", self.kv_dtype, get_args(KvDtypeOption))
        if self.device == "cuda":
            raise OptionError("device", self.device, "this build has no CUDA backend; cpu or auto works")
        _check_count("threads", self.threads, 1024, or_else=None)
        _check_count("max_context", self.max_context, 1 << 30, or_else=None)
        _check_count("kv_capacity", self.kv_capacity, 1 << 36, or_else="auto")
        _check_count("max_concurrency", self.max_concurrency, MAX_CONCURRENCY)
        _check_count("prefill_chunk", self.prefill_chunk, 1 << 20, or_else="auto")
        _check_count("default_max_tokens", self.default_max_tokens, 1 << 30)
        if self.chat_template is not None and not isinstance(self.chat_template, Path):
            raise OptionError("chat_template", self.chat_template, "the path of a file works")
        if isinstance(self.kv_capacity, int) and self.max_context is not None and self.max_context > self.kv_capacity:
            works = f"a kv_capacity of {self.kv_capacity} tokens holds a max_context of at most that"
            raise OptionError("max_context", self.max_context, works)

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any]) -> EngineOptions:
        """Raises OptionError for an unknown name, naming those that exist."""
        known = {field.name for field in fields(cls)}
        for name, value in options.items():
            if name not in known:
                raise OptionError(name, value, f"there is no such option; known are {', '.join(sorted(known))}")
        template = options.get("chat_template")
        if isinstance(template, str):
            options = {**options, "chat_template": Path(template)}
        return cls(**options)


def _check_choice(option: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise OptionError(option, value, f"one of {', '.join(choices)} works")


# What a count may be instead of a number; no count is this object, so without an alternative only numbers pass.
_NO_ALTERNATIVE = object()


def _check_count(option: str, value: object, most: int, *, or_else: object = _NO_ALTERNATIVE) -> None:
    if value == or_else:
        return
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        alternative = "" if or_else is _NO_ALTERNATIVE else f" or {or_else}"
        raise OptionError(option, value, f"a whole number from 1 to {most}{alternative} works")
