"""Giving up the least recently used (D-26): rung k evicts the k oldest owners, private and shared, and moves others to
Host as far as that helps and fits. The lowest rung that can be carried out says who may be lost at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ninfer.economics.machine_cost import Rows
from ninfer.planner.option_search import NO_STEPS, OptionSearch
from ninfer.planner.priced_target import PricedTarget
from ninfer.planner.session_columns import DEGRADATION, KINDS
from ninfer.planner.step_cover import Steps, cover

_EVICT = KINDS.index("evict")
_MOVES = [KINDS.index("pages_to_host"), KINDS.index("image_to_host")]
# Moving reveals what else has to move (Host geometry, shared pages); more rounds have not been seen to help.
_MOST_ROUNDS = 4


class RecencyLadder:
    """Of one option. oldest: its owners that may go, the least recently used first."""

    def __init__(self, search: OptionSearch) -> None:
        self._search = search
        self.oldest = search.evictable()

    def lowest(self) -> tuple[int, PricedTarget] | None:
        """How many owners go, and the target. None: not even without all of them."""
        found: dict[int, PricedTarget] = {}
        low, high = 0, len(self.oldest)
        while low < high:
            middle = (low + high) // 2
            if self._holds(middle, found):
                high = middle
            else:
                low = middle + 1
        return (low, found[low]) if self._holds(low, found) else None

    def _holds(self, rung: int, found: dict[int, PricedTarget]) -> bool:
        if rung not in found:
            target = self._rung(rung)
            if target is None:
                return False
            found[rung] = target
        return True

    def _rung(self, count: int) -> PricedTarget | None:
        """With as few moves as are enough, of the least recently used first."""
        steps = evictions(self.oldest[:count])
        for _ in range(_MOST_ROUNDS):
            target = self._search.target(steps)
            if target is None:
                return None
            [found] = self._search.priced([(target, steps)])
            if found.feasible:
                return found
            moves = self._moves(found)
            chosen = cover(moves, found.lacking)
            if not chosen:
                return None
            steps = np.concatenate([steps, moves.rows[chosen]])
        return None

    def _moves(self, parent: PricedTarget) -> Steps:
        listed = self._search.steps(parent)
        here = np.flatnonzero(np.isin(listed.rows[:, DEGRADATION["kind"]], _MOVES))
        rank = {owner: place for place, owner in enumerate(self.oldest)}
        ages = [1.0 + rank.get(owner, len(rank)) for owner in listed.rows[here, DEGRADATION["owner"]].tolist()]
        return Steps(listed.rows[here], np.array(ages), listed.reliefs[here])


def evictions(owners: Sequence[int]) -> Rows:
    rows = np.zeros((len(owners), NO_STEPS.shape[1]), dtype=np.int64)
    rows[:, DEGRADATION["kind"]] = _EVICT
    rows[:, DEGRADATION["owner"]] = owners
    return rows
