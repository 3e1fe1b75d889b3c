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

    The prompt cache: context_cache is whether there is one. device_state_slots: state images of checkpoints beside
    those of running requests. host_cache_mib: memory for what leaves the device. max_private_continuations:
    conversations that are kept; max_shared_prefixes: beginnings that many requests share.
    max_long_anchors_per_continuation: checkpoints kept of one conversation; auto_long_anchors of them are placed at its
    last messages. auto_prefix_grid: shared beginnings at fixed distances too. endpoint_anchors: whether a continued
    conversation keeps its earlier end.
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
    context_cache: bool = True
    device_state_slots: int = 8
    host_cache_mib: int | Literal["auto"] = "auto"
    max_private_continuations: int = 256
    max_shared_prefixes: int = 256
    max_long_anchors_per_continuation: int = 8
    auto_long_anchors: int = 8
    auto_prefix_grid: bool = False
    endpoint_anchors: bool = True

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
        self._check_cache()

    def _check_cache(self) -> None:
        for switch in ("context_cache", "auto_prefix_grid", "endpoint_anchors"):
            _check_choice(switch, getattr(self, switch), (True, False))
        _check_count("device_state_slots", self.device_state_slots, 1 << 16, least=0)
        _check_count("host_cache_mib", self.host_cache_mib, 1 << 24, or_else="auto", least=0)
        _check_count("max_private_continuations", self.max_private_continuations, 1 << 16)
        _check_count("max_shared_prefixes", self.max_shared_prefixes, 1 << 16, least=0)
        _check_count("max_long_anchors_per_continuation", self.max_long_anchors_per_continuation, 1 << 10, least=0)
        _check_count("auto_long_anchors", self.auto_long_anchors, 1 << 10, least=0)
        if self.max_private_continuations < self.max_concurrency:
            works = f"every running request needs one: at least max_concurrency, which is {self.max_concurrency}"
            raise OptionError("max_private_continuations", self.max_private_continuations, works)

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


def _check_choice(option: str, value: object, choices: tuple[object, ...]) -> None:
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise OptionError(option, value, f"one of {', '.join(map(str, choices))} works")


# What a count may be instead of a number; no count is this object, so without an alternative only numbers pass.
_NO_ALTERNATIVE = object()


def _check_count(option: str, value: object, most: int, *, or_else: object = _NO_ALTERNATIVE, least: int = 1) -> None:
    if value == or_else:
        return
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        alternative = "" if or_else is _NO_ALTERNATIVE else f" or {or_else}"
        raise OptionError(option, value, f"a whole number from {least} to {most}{alternative} works")
