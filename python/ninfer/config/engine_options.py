"""The options of a loaded model: names and defaults as in the serving contract, dashes as underscores."""

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
        _check_count("threads", self.threads, 1, 1024)
        _check_count("max_context", self.max_context, 1, 1 << 30)
        _check_count("kv_capacity", self.kv_capacity, 1, 1 << 40)
        _check_count("max_concurrency", self.max_concurrency, 1, MAX_CONCURRENCY)
        _check_count("prefill_chunk", self.prefill_chunk, 1, 1 << 20)
        _check_count("default_max_tokens", self.default_max_tokens, 1, 1 << 30)

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any]) -> EngineOptions:
        """Raises OptionError for an unknown name, naming those that exist."""
        known = {field.name for field in fields(cls)}
        for name, value in options.items():
            if name not in known:
                raise OptionError(name, value, f"there is no such option; known are {', '.join(sorted(known))}")
        return cls(**options)


def _check_choice(option: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise OptionError(option, value, f"one of {', '.join(choices)} works")


def _check_count(option: str, value: object, least: int, most: int) -> None:
    if value is None or value == "auto":
        return
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise OptionError(option, value, f"a whole number from {least} to {most} works")
