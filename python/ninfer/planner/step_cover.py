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

    def excluded_by(self, chosen: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """bool [n]: steps that mean nothing beside this one."""
        row = self.rows[chosen]
        kind, owner, checkpoint = (row[DEGRADATION[name]] for name in ("kind", "owner", "checkpoint"))
        same_owner = self.rows[:, DEGRADATION["owner"]] == owner
        if kind == _EVICT:
            return np.asarray(same_owner)
        kinds = self.rows[:, DEGRADATION["kind"]]
        same = self.rows[:, DEGRADATION["checkpoint"]] == checkpoint
        excluded = same & ((kinds == kind) | (kind == _DELETE) | (kinds == _DELETE))
        return np.asarray(excluded | (same_owner & (kinds == _EVICT)))


def least(steps: Steps, lacking: Rows) -> float:
    """At least about this must still be paid for what is lacking, int64 [axes]: of each axis its cheapest relief, in
    fractions; the dearest axis."""
    reliefs = steps.reliefs.astype(np.float64)
    with np.errstate(divide="ignore"):
        per_unit = np.where(reliefs > 0, steps.prices[:, None] / reliefs, np.inf)
    wanted = lacking > 0
    if not wanted.any():
        return 0.0
    cheapest = per_unit.min(axis=0, initial=np.inf)[wanted]
    return float(np.max(cheapest * lacking[wanted], initial=0.0))


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


def _take(steps: Steps, number: int, chosen: list[int], usable: np.ndarray, left: Numbers) -> None:
    chosen.append(number)
    usable &= ~steps.excluded_by(number)
    # Host blocks that a copy takes are only lacking if the exact assessment says so.
    left -= np.maximum(steps.reliefs[number], 0)


def _needed(steps: Steps, lacking: Rows, chosen: list[int]) -> list[int]:
    """Without those, the dearest first, that the others make needless."""
    reliefs = np.maximum(steps.reliefs, 0)
    for number in sorted(chosen, key=lambda one: -steps.prices[one]):
        rest = [one for one in chosen if one != number]
        if (reliefs[rest].sum(axis=0) >= lacking).all():
            chosen = rest
    return chosen
