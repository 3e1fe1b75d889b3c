"""One candidate's baseline: every checkpoint of its identity target, and what each saves there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ninfer.economics.machine_cost import MachineCost, Rows
from ninfer.economics.portfolio import Indices, Portfolio
from ninfer.economics.transfer_cost import Numbers
from ninfer.resources.cache_value import CacheValue, OwnerValue

_WORTHLESS = OwnerValue(weight=0.0)


@dataclass(frozen=True)
class OptionValue:
    """Rows of `portfolio` are in the order of `checkpoints`, its owners in that of `owners`.

    without: f64 [n], what is still saved if the checkpoint alone goes; without_owner: if its whole owner goes. As far
    as the baseline tells: it lists no ways that were worse in every respect.
    """

    portfolio: Portfolio
    checkpoints: Indices
    owners: Indices
    saving: Numbers
    without: Numbers
    without_owner: Numbers

    @property
    def owner_of_row(self) -> Indices:
        """int64 [n], handles."""
        return self.owners[self.portfolio.owner]

    def rows_of(self, checkpoints: Indices) -> Indices:
        """Of checkpoints that are all there."""
        rows = np.searchsorted(self.checkpoints, checkpoints)
        assert np.array_equal(self.checkpoints[rows], checkpoints), (self.checkpoints[rows], checkpoints)
        return rows

    def savings_after(self, targets: int, recoveries: Rows, prices: Numbers, columns: dict[str, int]) -> Numbers:
        """f64 [targets, n]: recovery rows name what differs from the identity, and each way to have it back."""
        after = np.broadcast_to(self.saving, (targets, len(self.saving))).copy()
        if len(recoveries) == 0:
            return after
        target = recoveries[:, columns["target"]]
        row = self.rows_of(recoveries[:, columns["checkpoint"]])
        best = np.full(after.shape, np.inf)
        np.minimum.at(best, (target, row), prices)
        changed = np.isfinite(best)
        after[changed] = np.maximum(0.0, self.portfolio.rebuild[np.nonzero(changed)[1]] - best[changed])
        return after


def option_value(recoveries: Rows, columns: dict[str, int], cost: MachineCost, value: CacheValue) -> OptionValue:
    """From the baseline's recovery rows."""
    prices = cost.recovery(recoveries, columns)
    checkpoints, first, row = np.unique(recoveries[:, columns["checkpoint"]], return_index=True, return_inverse=True)
    recovery = np.full(len(checkpoints), np.inf)
    np.minimum.at(recovery, row, prices)
    frontier = recoveries[first, columns["frontier"]]
    owners, owner = np.unique(recoveries[first, columns["owner"]], return_inverse=True)
    rebuild = cost.prefill.of(np.zeros(len(frontier)), frontier)
    rebuild[np.isin(checkpoints, list(value.worthless))] = 0.0
    place = {int(checkpoint): index for index, checkpoint in enumerate(checkpoints)}
    portfolio = Portfolio(
        owner=owner.astype(np.int64),
        weight=np.array([value.owners.get(int(one), _WORTHLESS).weight for one in owners], dtype=np.float64),
        rebuild=rebuild,
        demands=tuple(_rows(place, demand) for demand in value.demands),
        credited=_rows(place, value.credited),
    )
    base = recoveries[:, columns["base"]]
    is_other = base != recoveries[:, columns["checkpoint"]]
    owner_of = {int(checkpoint): int(owner) for checkpoint, owner in zip(checkpoints, owners[owner], strict=True)}
    is_foreign = np.array([owner_of.get(int(one)) for one in base]) != recoveries[:, columns["owner"]]

    def saved_by(ways: npt.NDArray[np.bool_]) -> Numbers:
        left = np.full(len(checkpoints), np.inf)
        np.minimum.at(left, row[ways], prices[ways])
        return portfolio.saving(left)

    return OptionValue(
        portfolio, checkpoints, owners, portfolio.saving(recovery), saved_by(is_other), saved_by(is_foreign)
    )


def _rows(place: dict[int, int], checkpoints: frozenset[int]) -> Indices:
    return np.array(sorted(place[one] for one in checkpoints if one in place), dtype=np.int64)
