"""The coefficients of one machine and one model, the same for all of one planning problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ninfer.economics.prefill_cost import PrefillCost
from ninfer.economics.transfer_cost import Numbers, TransferCost

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MachineCost:
    """source: where it comes from, "generic" or "calibrated". Prices order targets; they never say what fits."""

    to_host: TransferCost
    to_device: TransferCost
    within_device: TransferCost
    prefill: PrefillCost
    source: str = "generic"

    def transfers(self, rows: Rows, columns: dict[str, int]) -> Numbers:
        """Nanoseconds of each row's copies; a direction without columns has none."""
        price = np.zeros(len(rows))
        for name in ("to_host", "to_device", "within_device"):
            if f"{name}_operations" in columns:
                operations, moved = rows[:, columns[f"{name}_operations"]], rows[:, columns[f"{name}_bytes"]]
                price += getattr(self, name).of(operations, moved)
        return price

    def immediate(self, rows: Rows, columns: dict[str, int]) -> Numbers:
        """Nanoseconds until each target of assessment rows has its prompt computed."""
        return self.transfers(rows, columns) + self.prefill.of(
            rows[:, columns["reused_tokens"]], rows[:, columns["computed_tokens"]]
        )

    def recovery(self, rows: Rows, columns: dict[str, int]) -> Numbers:
        """Nanoseconds of each recipe of recovery rows: restoring its base and computing from there."""
        base = rows[:, columns["base_frontier"]]
        return self.transfers(rows, columns) + self.prefill.of(base, rows[:, columns["frontier"]] - base)
