"""Which machine this is, and what things cost on it."""

from __future__ import annotations

import platform
from pathlib import Path

from ninfer.config.model_config import ModelConfig
from ninfer.economics.calibration import CalibrationFile, MachineKey, prefill_signature
from ninfer.economics.generic_cost import generic_cost
from ninfer.economics.machine_cost import MachineCost
from ninfer.engine.capacity import Capacity

_CPU_FACTS = Path("/proc/cpuinfo")


def processor_name() -> str:
    """As it calls itself."""
    try:
        lines = _CPU_FACTS.read_text().splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def machine_key(capacity: Capacity) -> MachineKey:
    return MachineKey(processor_name(), capacity.cpu_isa, capacity.threads)


def machine_cost(
    config: ModelConfig, weights: str, capacity: Capacity, calibrations: CalibrationFile | None
) -> MachineCost:
    """What was measured, else what such a model would cost on any machine."""
    generic = generic_cost(config, capacity.threads)
    if calibrations is None:
        return generic
    return calibrations.cost(machine_key(capacity), prefill_signature(config, weights, capacity.kv_dtype), generic)
