"""Sets of steps that bring back what a target lacks, as far as the steps' own reliefs tell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ninfer.economics.machine_cost import Rows
from ninfer.economics.transfer_cost import Numbers
from ninfer.planner.session_columns import DEGRADATION, KINDS

_DELETE, _EVICT = KINDS.index("delete"), KINDS.index("evict")


@dataclass(frozen=True)
class Steps:
    """Degradation rows int64 [n, columns], what each costs, f64 [n], and what it brings back, int64 [n, axes]."""

    rows: Rows
    prices: Numbers
    reliefs: Rows

    def owner(self, number: int) -> int:
        return int(self.rows[number, DEGRADATION["owner"]])

    def evicts(self, number: int) -> bool:
        return bool(self.rows[number, DEGRADATION["kind"]] == _EVICT)

    def excluded_by(self, chosen: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """bool [n]: steps that mean nothing after this one. An eviction comes after anything of its owner's. The last
        checkpoint of an owner goes with it, not by a step of its own."""
        same_owner = self.rows[:, DEGRADATION["owner"]] == self.owner(chosen)
        if self.evicts(chosen):
            return np.asarray(same_owner)
        kind, checkpoint = (self.rows[chosen, DEGRADATION[name]] for name in ("kind", "checkpoint"))
        kinds = self.rows[:, DEGRADATION["kind"]]
        same = self.rows[:, DEGRADATION["checkpoint"]] == checkpoint
        return np.asarray(same & ((kinds == kind) | (kind == _DELETE) | (kinds == _DELETE)))


def unit_prices(steps: Steps) -> Numbers:
    """f64 [axes]: the cheapest relief of each, per unit; infinite where no step gives any."""
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(steps.reliefs > 0, steps.prices[:, None] / steps.reliefs, np.inf)
    return np.asarray(each.min(axis=0, initial=np.inf), dtype=np.float64)


def least(lacking: Rows, units: Numbers) -> Numbers:
    """f64 [...]: about this must still be paid for what is lacking, int64 [..., axes], at these prices per unit, in
    fractions of steps; the dearest axis counts."""
    wanted = np.maximum(lacking, 0)
    with np.errstate(invalid="ignore"):
        each = np.where(wanted > 0, wanted * units, 0.0)
    return np.asarray(each.max(axis=-1, initial=0.0), dtype=np.float64)


def cover(steps: Steps, lacking: Rows, first: int | None = None) -> list[int] | None:
    """Numbers of steps that together relieve what is lacking, the cheapest per relief first, none of them needless;
    `first` is tried before all others. None if all together are not enough."""
    chosen: list[int] = []
    usable = np.ones(len(steps.rows), dtype=bool)
    reliefs = steps.reliefs.astype(np.float64)
    left = lacking.astype(np.float64)
    whole = np.maximum(left, 1.0)
    if first is not None:
        _take(steps, first, chosen, usable, left)
    while (left > 0).any():
        helped = np.clip(np.minimum(reliefs, np.maximum(left, 0)) / whole, 0, None).sum(axis=1)
        helped[~usable] = 0.0
        if not (helped > 0).any():
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(helped > 0, steps.prices / helped, np.inf)
        _take(steps, int(np.argmin(ratio)), chosen, usable, left)
    return _needed(steps, lacking, chosen)


def _take(
    steps: Steps, number: int, chosen: list[int], usable: np.ndarray[tuple[int], np.dtype[np.bool_]], left: Numbers
) -> None:
    if steps.evicts(number):
        for other in [one for one in chosen if steps.owner(one) == steps.owner(number)]:
            chosen.remove(other)
            left += np.maximum(steps.reliefs[other], 0)
    chosen.append(number)
    usable &= ~steps.excluded_by(number)
    # Host blocks that a copy takes are only lacking if the exact assessment says so.
    left -= np.maximum(steps.reliefs[number], 0)
    if not steps.evicts(number):
        deletes = (steps.rows[:, DEGRADATION["kind"]] == _DELETE) & usable
        of_owner = deletes & (steps.rows[:, DEGRADATION["owner"]] == steps.owner(number))
        if steps.rows[number, DEGRADATION["kind"]] == _DELETE and of_owner.sum() == 1:
            usable &= ~of_owner


def _needed(steps: Steps, lacking: Rows, chosen: list[int]) -> list[int]:
    """Without those, the dearest first, that the others make needless."""
    reliefs = np.maximum(steps.reliefs, 0)
    for number in sorted(chosen, key=lambda one: -steps.prices[one]):
        rest = [one for one in chosen if one != number]
        if (reliefs[rest].sum(axis=0) >= lacking).all():
            chosen = rest
    return chosen
