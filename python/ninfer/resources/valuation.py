"""What the catalog knows of the worth of everything that is kept, for the planner."""

from __future__ import annotations

from ninfer.resources.cache_value import CacheValue, OwnerValue
from ninfer.resources.catalog import Catalog
from ninfer.resources.demand_window import PrefixKey
from ninfer.resources.private_catalog import CellState
from ninfer.resources.retention import RetentionClass

WEIGHTS = {RetentionClass.DISPOSABLE: 1.0, RetentionClass.RECENT_PRIVATE: 4.0, RetentionClass.LIVE_SESSION: 16.0}
"""How many savings the next use of a private owner is worth (E3)."""


def cache_value(catalog: Catalog) -> CacheValue:
    keys = catalog.demand.keys()
    checkpoints_of = _by_key(catalog, frozenset[PrefixKey]().union(*keys))
    demands = tuple(frozenset(one for key in wanted for one in checkpoints_of.get(key, ())) for wanted in keys)
    return CacheValue(
        owners={**_private(catalog), **_shared(catalog)},
        demands=demands,
        credited=_credited(catalog),
        hit_at={checkpoint: at for at, matching in enumerate(demands) for checkpoint in matching},
        worthless=frozenset(catalog.doomed),
        free_places=catalog.cells.free_count,
    )


def _private(catalog: Catalog) -> dict[int, OwnerValue]:
    return {
        cell.owner: OwnerValue(WEIGHTS[cell.retention], cell.used_at, catalog.sessions.name_of(cell.number) is not None)
        for cell in catalog.cells
        if cell.state is CellState.IDLE
    }


def _shared(catalog: Catalog) -> dict[int, OwnerValue]:
    return {prefix.owner: OwnerValue(0.0, prefix.used_at, frees_place=False) for prefix in catalog.shared}


def _credited(catalog: Catalog) -> frozenset[int]:
    """Of one frontier and digest one (D-20)."""
    of_key = {
        (prefix.entry.frontier, prefix.entry.digest): prefix.entry.checkpoint
        for prefix in catalog.shared
        if prefix.has_credit(catalog.admissions)
    }
    return frozenset(of_key.values())


def _by_key(catalog: Catalog, wanted: frozenset[PrefixKey]) -> dict[PrefixKey, list[int]]:
    found: dict[PrefixKey, list[int]] = {}
    for entry in catalog.entry_of_row.values():
        key = (entry.frontier, entry.digest)
        if key in wanted and not entry.doomed:
            found.setdefault(key, []).append(entry.checkpoint)
    return found
