"""The sizes of a program: what the options ask for, resolved against the machine and the model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ninfer import native
from ninfer.config.engine_options import EngineOptions
from ninfer.config.model_config import ModelConfig, Qwen35Config
from ninfer.errors import CapacityError, OptionError

PAGE_TOKENS = 64
# One unit never needs more rows than this to reach full speed.
MAX_AUTO_CHUNK = 2048
_KV_SHARE_OF_FREE_MEMORY = 0.25
_HOST_SHARE_OF_FREE_MEMORY = 0.25
_MAX_AUTO_HOST_MIB = 8192
_KV_ELEMENT_BYTES: Mapping[str, int] = {"f32": 4, "bf16": 2, "int8": 1}
_KV_SCALE_FEATURES = 64


@dataclass(frozen=True)
class Capacity:
    """Resolved sizes: threads, instruction set, tokens and pages; `kv_dtype` is how keys and values are stored.

    checkpoint_slots: state images of checkpoints on Device, beside one per running request; host_bytes: of the Host
    tier. Both are 0 without a prompt cache.
    """

    threads: int
    cpu_isa: str
    kv_dtype: str
    max_context: int
    kv_pages: int
    max_concurrency: int
    checkpoint_slots: int
    host_bytes: int


def kv_token_bytes(config: ModelConfig, kv_dtype: str) -> int:
    """Bytes of keys and values of one token in all attention layers."""
    layers = config.layers
    if isinstance(config, Qwen35Config):
        layers = sum(layer_type == "full_attention" for layer_type in config.layer_types)
    features = config.head_dim * _KV_ELEMENT_BYTES[kv_dtype]
    if kv_dtype == "int8":
        features += 4 * -(-config.head_dim // _KV_SCALE_FEATURES)
    return layers * 2 * config.kv_heads * features


def resolve_capacity(options: EngineOptions, config: ModelConfig) -> Capacity:
    """Raises OptionError for an option this machine or model cannot serve, CapacityError if not one page fits."""
    wanted_context = min(options.max_context or config.max_context, config.max_context)
    if options.max_context is not None and options.max_context > config.max_context:
        raise OptionError("max_context", options.max_context, f"the model was made for {config.max_context} tokens")
    kv_dtype = "bf16" if options.kv_dtype == "auto" else options.kv_dtype
    token_bytes = kv_token_bytes(config, kv_dtype)
    kv_tokens = options.kv_capacity
    if kv_tokens == "auto":
        kv_tokens = _auto_kv_tokens(token_bytes, options.max_concurrency * wanted_context)
    pages = -(-kv_tokens // PAGE_TOKENS)
    kv_bytes = pages * PAGE_TOKENS * token_bytes
    host_bytes = _host_bytes(options, kv_bytes)
    _check_bytes(kv_bytes, host_bytes)
    return Capacity(
        threads=options.threads or physical_cores(),
        cpu_isa=_resolve_isa(options.cpu_isa),
        kv_dtype=kv_dtype,
        max_context=min(wanted_context, pages * PAGE_TOKENS),
        kv_pages=pages,
        max_concurrency=options.max_concurrency,
        checkpoint_slots=options.device_state_slots if options.context_cache else 0,
        host_bytes=host_bytes,
    )


def _auto_kv_tokens(token_bytes: int, most: int) -> int:
    if token_bytes == 0:
        return most
    affordable = int(free_memory_bytes() * _KV_SHARE_OF_FREE_MEMORY) // token_bytes
    if affordable < PAGE_TOKENS:
        needed = PAGE_TOKENS * token_bytes
        raise CapacityError(f"one KV page needs {needed} bytes, a quarter of free memory is {affordable * token_bytes}")
    return min(affordable, most)


def _host_bytes(options: EngineOptions, kv_bytes: int) -> int:
    """Memory of the Host tier; it is reserved without touching it, and filled as checkpoints leave the device. An
    automatic one leaves the pages what they were promised."""
    if not options.context_cache:
        return 0
    if options.host_cache_mib != "auto":
        return options.host_cache_mib << 20
    free = free_memory_bytes()
    affordable = min(int(free * _HOST_SHARE_OF_FREE_MEMORY), max(free - kv_bytes, 0) // 2)
    return min(_MAX_AUTO_HOST_MIB, affordable >> 20) << 20


def _check_bytes(kv_bytes: int, host_bytes: int) -> None:
    """Both pools are reserved without touching them, so too large ones would only be noticed when they fill up."""
    free = free_memory_bytes()
    if kv_bytes > free:
        raise CapacityError(f"kv_capacity needs {kv_bytes} bytes, {free} are free")
    if kv_bytes + host_bytes > free:
        raise CapacityError(f"host_cache_mib needs {host_bytes} bytes, {free - kv_bytes} are free beside kv_capacity")


def _resolve_isa(wanted: str) -> str:
    supported: list[str] = native.supported_cpu_isas()
    if wanted == "auto":
        return supported[-1]
    if wanted not in supported:
        raise OptionError("cpu_isa", wanted, f"this machine supports {', '.join(supported)}")
    return wanted


def free_memory_bytes() -> int:
    """Memory that can be had without swapping, in this container if it has a limit of its own."""
    available = _meminfo_available()
    limit = _read_int(Path("/sys/fs/cgroup/memory.max"))
    used = _read_int(Path("/sys/fs/cgroup/memory.current"))
    if limit is not None and used is not None:
        available = min(available, max(limit - used, 0))
    return available


def _meminfo_available() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _read_int(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def physical_cores() -> int:
    """Physical cores among the CPUs this process may run on; hyper-threads count once."""
    cores = set()
    allowed = os.sched_getaffinity(0)
    for cpu in allowed:
        topology = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
        package, core = (_read_int(topology / name) for name in ("physical_package_id", "core_id"))
        cores.add((package, core) if core is not None else (None, cpu))
    return max(1, len(cores))
