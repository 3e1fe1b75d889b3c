"""What steps down would cost, one by one. An estimate that orders the search; exact assessments decide."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ninfer.economics.machine_cost import MachineCost, Rows
from ninfer.economics.transfer_cost import Numbers
from ninfer.planner.option_value import OptionValue
from ninfer.planner.session_columns import DEGRADATION, KINDS, RELIEF

_PAGES, _IMAGE = KINDS.index("pages_to_host"), KINDS.index("image_to_host")
_SHORTEN, _DELETE, _EVICT = KINDS.index("shorten"), KINDS.index("delete"), KINDS.index("evict")


@dataclass(frozen=True)
class StepPrices:
    """Of one option, at its identity. loss: f64 [n checkpoints], owner_loss: f64 [m owners], if it goes; uses: f64 [n],
    how often its restoration would be paid."""

    value: OptionValue
    cost: MachineCost
    page_bytes: int
    image_bytes: int
    loss: Numbers
    owner_loss: Numbers
    uses: Numbers

    def of(self, steps: Rows) -> Numbers:
        """Nanoseconds of degradation rows, each taken alone."""
        kind = steps[:, DEGRADATION["kind"]]
        price = np.zeros(len(steps))
        evicts = kind == _EVICT
        owners = np.searchsorted(self.value.owners, steps[evicts, DEGRADATION["owner"]])
        price[evicts] += self.owner_loss[owners]
        row = np.zeros(len(steps), dtype=np.int64)
        row[~evicts] = self.value.rows_of(steps[~evicts, DEGRADATION["checkpoint"]])
        deletes = kind == _DELETE
        price[deletes] += self.loss[row[deletes]]
        shortens = kind == _SHORTEN
        price[shortens] += self._shortened(steps[shortens], row[shortens])
        moves = (kind == _PAGES) | (kind == _IMAGE)
        price[moves] += self._moved(steps[moves], row[moves])
        return price

    def _shortened(self, steps: Rows, row: Rows) -> Numbers:
        left = self.cost.prefill.of(np.zeros(len(steps)), steps[:, DEGRADATION["frontier"]])
        lost = np.maximum(0.0, self.value.saving[row] - left)
        return np.asarray(np.minimum(lost * np.maximum(1.0, self.uses[row]), self.loss[row]), dtype=np.float64)

    def _moved(self, steps: Rows, row: Rows) -> Numbers:
        """Now to Host, and back whenever it is used; at most what losing it would cost."""
        pages = steps[:, RELIEF[0]]
        is_image = steps[:, DEGRADATION["kind"]] == _IMAGE
        moved = np.where(is_image, self.image_bytes, pages * self.page_bytes)
        operations = np.where(is_image, 1, pages)
        back = self.cost.to_device.of(operations, moved) * self.uses[row]
        copied = steps[:, DEGRADATION["copied_bytes"]]
        now = self.cost.to_host.of(np.where(copied > 0, operations, 0), copied)
        return np.asarray(now + np.minimum(back, self.loss[row]), dtype=np.float64)


def step_prices(value: OptionValue, cost: MachineCost, page_bytes: int, image_bytes: int) -> StepPrices:
    portfolio, saving = value.portfolio, value.saving
    weight = portfolio.weight[portfolio.owner]
    owner_loss = np.zeros(len(value.owners))
    np.maximum.at(owner_loss, portfolio.owner, weight * (saving - value.without_owner))
    loss = weight * (saving - value.without)
    uses = weight.copy()
    for matching in (*portfolio.demands, *(np.array([one]) for one in portfolio.credited)):
        if len(matching) == 0:
            continue
        best = matching[np.argmax(saving[matching])]
        uses[best] += 1
        rest = saving[matching[matching != best]].max(initial=value.without[best])
        loss[best] += saving[best] - rest
        others = matching[portfolio.owner[matching] != portfolio.owner[best]]
        owner_loss[portfolio.owner[best]] += saving[best] - saving[others].max(initial=value.without_owner[best])
    return StepPrices(value, cost, page_bytes, image_bytes, loss, owner_loss, uses)
