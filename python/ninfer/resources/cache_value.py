"""What the planner has to know about who may lose something: facts of the catalog, which the program does not have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class OwnerValue:
    """weight: of its next use (E3), 0 for a shared prefix. used_at: epoch of its last hit or publication. is_bound: a
    session's present continuation. frees_place: evicted, it leaves a place for another private continuation."""

    weight: float
    used_at: int = 0
    is_bound: bool = False
    frees_place: bool = True


@dataclass(frozen=True)
class CacheValue:
    """owners: by handle; who is not there is worth nothing.

    demands: of each observed request the checkpoints that it could have used. credited: those with a shared credit, of
    one frontier and digest one. hit_at: epoch of a checkpoint's last observed hit. worthless: checkpoints that
    serve nobody any more. free_places: for private continuations.
    """

    owners: Mapping[int, OwnerValue] = field(default_factory=dict)
    demands: tuple[frozenset[int], ...] = ()
    credited: frozenset[int] = frozenset()
    hit_at: Mapping[int, int] = field(default_factory=dict)
    worthless: frozenset[int] = frozenset()
    free_places: int = 1 << 30
