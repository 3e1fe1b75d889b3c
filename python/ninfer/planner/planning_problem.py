"""Everything that one planning of an admission depends on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ninfer.economics.machine_cost import MachineCost
from ninfer.economics.portfolio import NewCheckpoint
from ninfer.resources.cache_value import CacheValue


@dataclass(frozen=True)
class SearchBudget:
    """targets: that are assessed beyond identities. first_s: time for a search, renewed once to most_s while a better
    target is to be expected; None: no limit on time, so that the same problem has the same answer (D-27)."""

    targets: int = 256
    first_s: float | None = 0.002
    most_s: float = 0.010


@dataclass(frozen=True)
class PlanningOption:
    """publication: what the session is asked for. source: the checkpoint from which an admission starts, 0 for root or
    no admission. needs_place: it ends in a continuation or a shared prefix of its own. is_bound: it continues the
    session's present one.

    new: of a capture for everybody; what it costs now then counts for `waiting` requests and itself.
    """

    publication: Any
    source: int = 0
    needs_place: bool = False
    is_bound: bool = False
    new: NewCheckpoint | None = None
    waiting: int = 0


@dataclass(frozen=True)
class PlanningProblem:
    """options: root first, then in the order in which they are wanted. value: asked only under pressure. by_recency:
    only the least recently used owners are lost, as few of them as must be (D-26)."""

    options: Sequence[PlanningOption]
    protected_owners: Sequence[int]
    value: Callable[[], CacheValue]
    cost: MachineCost
    page_bytes: int
    image_bytes: int
    budget: SearchBudget = field(default_factory=SearchBudget)
    by_recency: bool = False
    clock: Callable[[], float] = time.perf_counter
