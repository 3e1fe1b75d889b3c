"""What the catalog shows of itself, and whether it adds up."""

from __future__ import annotations

from collections import Counter

from ninfer.native import Refusal, must
from ninfer.resources.catalog import Catalog
from ninfer.resources.private_catalog import Cell, CellState
from ninfer.resources.reuse_report import ReuseReason
from ninfer.resources.slot_facts import CatalogStatistics, SlotFacts

_SHOWN_STATES = {
    CellState.IDLE: "idle",
    CellState.ACTIVE: "active",
    CellState.RESERVED: "claimed",
    CellState.TAKEN: "claimed",
}


def slots(catalog: Catalog) -> tuple[SlotFacts, ...]:
    """As the program has it now: what an open transaction has removed already is left out, though the catalog learns of
    it only with the result."""
    statistics = catalog.view.statistics()
    sizes = (statistics.page_bytes, statistics.state_image_bytes)
    return tuple(_slot(catalog, cell, *sizes) for cell in catalog.cells if cell.state is not CellState.FREE)


def _slot(catalog: Catalog, cell: Cell, page_bytes: int, image_bytes: int) -> SlotFacts:
    asked = [(entry, catalog.view.checkpoint(entry.checkpoint)) for entry in cell.entries]
    there = [(entry, summary) for entry, summary in asked if not isinstance(summary, Refusal)]
    found = [summary for _, summary in there]
    device = max((one.pages_on_device for one in found), default=0) * page_bytes
    host = max((one.pages_on_host for one in found), default=0) * page_bytes
    name = catalog.sessions.name_of(cell.number)
    return SlotFacts(
        cell=cell.number,
        state=_SHOWN_STATES[cell.state],
        session=None if name is None else name[1],
        retention=cell.retention,
        tokens=max((entry.frontier for entry, _ in there), default=0),
        kinds=tuple(entry.kind for entry, _ in there if not entry.doomed),
        device_bytes=device + image_bytes * sum(one.image_on_device for one in found),
        host_bytes=host + image_bytes * sum(one.image_on_host for one in found),
    )


def statistics(catalog: Catalog, short: Counter[ReuseReason], captures_without_room: int) -> CatalogStatistics:
    states = Counter(cell.state for cell in catalog.cells)
    return CatalogStatistics(
        private_capacity=len(catalog.cells.cells),
        private_used=len(catalog.cells.cells) - states[CellState.FREE],
        private_active=states[CellState.ACTIVE],
        private_claimed=states[CellState.RESERVED] + states[CellState.TAKEN],
        shared_capacity=catalog.shared.capacity,
        shared_used=len(catalog.shared),
        checkpoints=len(catalog.place_of),
        sessions=len(catalog.sessions),
        edges=len(catalog.edges),
        removed={reason.value: count for reason, count in catalog.removed.items()},
        short={reason.value: count for reason, count in short.items()},
        captures_without_room=captures_without_room,
    )


def check_invariants(catalog: Catalog) -> None:
    """The catalog and the program name the same owners and checkpoints, and every index says the same."""
    entries = [entry for cell in catalog.cells for entry in cell.entries] + [one.entry for one in catalog.shared]
    assert {entry.checkpoint for entry in entries} == set(catalog.place_of), "every checkpoint has one place"
    assert sorted(entry.row for entry in entries) == catalog.index.used_rows() == sorted(catalog.entry_of_row)
    assert set(catalog.doomed) == {entry.checkpoint for entry in entries if entry.doomed}
    for cell in catalog.cells:
        _check_cell(catalog, cell)
    for prefix in catalog.shared:
        assert must(catalog.view.owner(prefix.owner)).checkpoints == [prefix.entry.checkpoint], prefix
    free = sum(cell.state is CellState.FREE for cell in catalog.cells)
    assert free == catalog.cells.free_count, (free, catalog.cells.free_count)
    bound = sum(catalog.sessions.name_of(cell.number) is not None for cell in catalog.cells)
    assert bound == len(catalog.sessions), (bound, len(catalog.sessions))


def _check_cell(catalog: Catalog, cell: Cell) -> None:
    frontiers = [entry.frontier for entry in cell.entries]
    assert frontiers == sorted(frontiers), cell
    if cell.state in (CellState.FREE, CellState.RESERVED):
        assert cell.owner == 0 and not cell.entries and catalog.sessions.name_of(cell.number) is None, cell
        assert catalog.marks.count_of(cell.number) == 0, "nobody agrees with an empty cell"
        return
    summary = must(catalog.view.owner(cell.owner))
    assert set(summary.checkpoints) == {entry.checkpoint for entry in cell.entries}, (summary.checkpoints, cell)
    assert (summary.role == "active") == (cell.state is CellState.ACTIVE), (summary.role, cell.state)
    assert cell.state is CellState.ACTIVE or cell.standing, "an inactive continuation keeps at least one checkpoint"
