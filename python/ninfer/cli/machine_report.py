"""What decides whether and how models run here: CPU, memory, folders, port."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from ninfer import native
from ninfer.cli.package_version import package_version
from ninfer.config.engine_options import EngineOptions
from ninfer.config.store_location import cache_directory, models_directory
from ninfer.engine.capacity import free_memory_bytes, physical_cores
from ninfer.engine.machine import processor_name
from ninfer.errors import NinferError, OptionError
from ninfer.model_store.model_store import ModelStore
from ninfer.serving.listening import listen
from ninfer.serving.serving_options import ServingOptions

_NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")


def machine_report(environment: Mapping[str, str], host: str, port: int) -> dict[str, dict[str, Any]]:
    """Sections of facts, in the order in which they are shown. Sizes in bytes."""
    return {
        "versions": {"ninfer": package_version(), "python": platform.python_version(), "system": platform.platform()},
        "cpu": _cpu(),
        "memory": _memory(),
        "defaults": _defaults(),
        "cuda": _cuda(),
        "model_store": _store(models_directory(environment)),
        "cache_directory": _directory(cache_directory(environment)),
        "port": _port(host, port),
    }


def _cpu() -> dict[str, Any]:
    supported = native.supported_cpu_isas()
    return {
        "name": processor_name(),
        "physical_cores": physical_cores(),
        "logical_cpus": len(os.sched_getaffinity(0)),
        "instruction_sets": supported,
        "chosen": supported[-1],
    }


def _memory() -> dict[str, Any]:
    totals = _values(Path("/proc/meminfo"), "MemTotal")
    limit = _text(Path("/sys/fs/cgroup/memory.max"))
    return {
        "total_bytes": int(totals[0].split()[0]) * 1024 if totals else None,
        "free_bytes": free_memory_bytes(),
        "cgroup_limit_bytes": int(limit) if limit.isdigit() else None,
    }


def _defaults() -> dict[str, Any]:
    """Those that do not depend on the model."""
    engine = EngineOptions()
    serving = ServingOptions(served_model_names=("model",))
    return {
        "device": "cpu",
        "threads": physical_cores(),
        "cpu_isa": native.supported_cpu_isas()[-1],
        "weights": engine.weights,
        "kv_dtype": "bf16",
        "kv_capacity": engine.kv_capacity,
        "max_concurrency": engine.max_concurrency,
        "max_queued": serving.max_queued,
        "prefill_chunk": engine.prefill_chunk,
        "default_max_tokens": engine.default_max_tokens,
        "max_body_mib": serving.max_body_mib,
    }


def _cuda() -> dict[str, Any]:
    try:
        EngineOptions(device="cuda")
    except OptionError as error:
        reason = error.works.partition(";")[0]
    else:
        reason = ""
    driver = _text(_NVIDIA_DRIVER).partition("\n")[0]
    return {"library": None, "reason": reason, "driver": driver or f"none ({_NVIDIA_DRIVER} does not exist)"}


def _store(path: Path) -> dict[str, Any]:
    try:
        models = [stored.entry.name for stored in ModelStore(path).list_models()]
    except (NinferError, OSError) as error:
        return {**_directory(path), "error": str(error)}
    return {**_directory(path), "models": models}


def _directory(path: Path) -> dict[str, Any]:
    """Writable also means that it can be made."""
    existing = path
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    return {"path": str(path), "exists": path.exists(), "writable": _takes_a_file(existing)}


def _takes_a_file(folder: Path) -> bool:
    """Tried, since permissions do not say it for the administrator."""
    try:
        with TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _port(host: str, port: int) -> dict[str, Any]:
    try:
        sockets = listen(host, port)
    except OptionError as error:
        return {"host": host, "port": port, "free": False, "reason": error.works}
    for one in sockets:
        one.close()
    return {"host": host, "port": port, "free": True}


def _values(file: Path, name: str) -> list[str]:
    """What stands behind `name:` in a file of /proc."""
    pairs = (line.partition(":") for line in _text(file).splitlines())
    return [value.strip() for key, _, value in pairs if key.strip() == name]


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
