"""Measured coefficients, kept in a file of the user's cache: `calibration.json`.

Transfers belong to a machine and its instruction set, prefill to these and a prefill signature: the sizes of the model
and how weights, keys and values are stored, never names or values of weights. A file that cannot be read is none, since
prices only order what is possible anyway.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from ninfer.config.model_config import ModelConfig
from ninfer.economics.fitted_cost import Residual
from ninfer.economics.machine_cost import MachineCost
from ninfer.economics.prefill_cost import PrefillCost
from ninfer.economics.transfer_cost import TransferCost

_FILE = "calibration.json"
_FORMAT = 1
_DIRECTIONS = ("to_host", "to_device", "within_device")


@dataclass(frozen=True)
class MachineKey:
    """processor: as it calls itself."""

    processor: str
    cpu_isa: str
    threads: int

    def text(self) -> str:
        return f"{self.processor} / {self.cpu_isa} / {self.threads} threads"


@dataclass(frozen=True)
class Calibration:
    """residuals: by what was fitted, the three directions and "prefill"."""

    machine: MachineKey
    signature: str
    cost: MachineCost
    residuals: dict[str, Residual]


def prefill_signature(config: ModelConfig, weights: str, kv_dtype: str) -> str:
    facts = {"family": type(config).__name__, "weights": weights, "kv_dtype": kv_dtype, **asdict(config)}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _coefficients(kept: Any, of: type[TransferCost] | type[PrefillCost]) -> dict[str, float] | None:
    """None unless it is all of them, each a number that a price can have: nothing else ever reaches a planner."""
    names = {field.name for field in fields(of)}
    if not isinstance(kept, dict) or kept.keys() != names:
        return None
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in kept.values())
    return kept if numbers and all(0 <= one < math.inf for one in kept.values()) else None


class CalibrationFile:
    """The file in this folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / _FILE

    def cost(self, machine: MachineKey, signature: str, generic: MachineCost) -> MachineCost:
        """Transfers and prefill are looked up each for itself; what was never measured is generic."""
        kept = self._read()
        transfers = kept["transfers"].get(machine.text())
        found: dict[str, Any] = {}
        for name in _DIRECTIONS:
            measured = _coefficients(transfers.get(name) if isinstance(transfers, dict) else None, TransferCost)
            if measured is not None:
                found[name] = TransferCost(**measured)
        measured = _coefficients(kept["prefill"].get(f"{machine.text()} / {signature}"), PrefillCost)
        if measured is not None:
            found["prefill"] = PrefillCost(**measured)
        return replace(generic, **found, source="calibrated") if found else generic

    def keep(self, calibration: Calibration) -> None:
        """Replaces what was there of the same machine and signature. Raises OSError."""
        kept = self._read()
        machine = calibration.machine.text()
        kept["transfers"][machine] = {name: asdict(getattr(calibration.cost, name)) for name in _DIRECTIONS}
        kept["prefill"][f"{machine} / {calibration.signature}"] = asdict(calibration.cost.prefill)
        kept["residuals"][f"{machine} / {calibration.signature}"] = {
            name: asdict(residual) for name, residual in calibration.residuals.items()
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        written = self.path.with_name(f"{_FILE}.{os.getpid()}")
        written.write_text(json.dumps({"format": _FORMAT, **kept}, indent=2, sort_keys=True) + "\n")
        written.replace(self.path)

    def _read(self) -> dict[str, dict[str, Any]]:
        empty: dict[str, dict[str, Any]] = {"transfers": {}, "prefill": {}, "residuals": {}}
        try:
            found = json.loads(self.path.read_text())
        except (OSError, ValueError):
            return empty
        if not isinstance(found, dict) or found.get("format") != _FORMAT:
            return empty
        return {name: found[name] if isinstance(found.get(name), dict) else {} for name in empty}
