"""Private continuations: one cell each, a fixed number of them. A cell's number is the slot's id.

Life of a cell:
1. FREE: nothing;
2. RESERVED: a request was promised it, and nothing is in it yet; goes ACTIVE, or back to FREE;
3. ACTIVE: a running request's owner, with the checkpoints that it has so far; goes IDLE when it finishes, FREE when it
   is discarded;
4. IDLE: an inactive owner, which may serve, be taken over or be evicted;
5. TAKEN: an IDLE one that a starting request is about to take over, or whose owner makes place for it; goes ACTIVE, or
   back to IDLE.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field

from ninfer.resources.catalog_entry import CatalogEntry
from ninfer.resources.retention import RetentionClass


class CellState(enum.Enum):
    FREE = "free"
    RESERVED = "reserved"
    ACTIVE = "active"
    IDLE = "idle"
    TAKEN = "taken"


_MOVES: dict[CellState, frozenset[CellState]] = {
    CellState.FREE: frozenset({CellState.RESERVED}),
    CellState.RESERVED: frozenset({CellState.ACTIVE, CellState.FREE}),
    CellState.ACTIVE: frozenset({CellState.IDLE, CellState.FREE}),
    CellState.IDLE: frozenset({CellState.TAKEN, CellState.FREE}),
    CellState.TAKEN: frozenset({CellState.ACTIVE, CellState.IDLE, CellState.FREE}),
}


@dataclass(slots=True)
class Cell:
    """owner: the program's handle, 0 for none. entries: by ascending frontier. used_at: the epoch of its last use."""

    number: int
    rows: tuple[int, ...]
    state: CellState = CellState.FREE
    owner: int = 0
    salt: str = ""
    entries: list[CatalogEntry] = field(default_factory=list)
    retention: RetentionClass = RetentionClass.DISPOSABLE
    used_at: int = 0

    def move_to(self, state: CellState) -> None:
        assert state in _MOVES[self.state], (self.number, self.state, state)
        self.state = state

    @property
    def serves(self) -> bool:
        """Whether it has something that another request may start from."""
        return self.state in (CellState.IDLE, CellState.ACTIVE) and bool(self.entries)

    @property
    def standing(self) -> list[CatalogEntry]:
        return [entry for entry in self.entries if not entry.doomed]

    def free_rows(self) -> list[int]:
        used = {entry.row for entry in self.entries}
        return [row for row in self.rows if row not in used]


class PrivateCatalog:
    """All cells, and which of them an owner has."""

    def __init__(self, cells: int, rows_per_cell: int) -> None:
        self.cells = [
            Cell(number, tuple(range(number * rows_per_cell, (number + 1) * rows_per_cell))) for number in range(cells)
        ]
        self.rows_per_cell = rows_per_cell
        self._free = list(range(cells - 1, -1, -1))
        self._cell_of_owner: dict[int, int] = {}

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.cells)

    def __getitem__(self, number: int) -> Cell:
        return self.cells[number]

    @property
    def free_count(self) -> int:
        return len(self._free)

    def reserve(self) -> Cell | None:
        """A free cell, RESERVED now."""
        if not self._free:
            return None
        cell = self.cells[self._free.pop()]
        cell.move_to(CellState.RESERVED)
        return cell

    def of_owner(self, owner: int) -> Cell | None:
        number = self._cell_of_owner.get(owner)
        return None if number is None else self.cells[number]

    def give_owner(self, cell: Cell, owner: int) -> None:
        assert cell.owner == 0 and owner not in self._cell_of_owner, (cell.number, cell.owner, owner)
        cell.owner = owner
        self._cell_of_owner[owner] = cell.number

    def free(self, cell: Cell) -> None:
        """Its entries are gone already."""
        cell.move_to(CellState.FREE)
        self.vacate(cell)
        self._free.append(cell.number)

    def vacate(self, cell: Cell) -> None:
        """Its entries are gone already, and it is nobody's."""
        assert not cell.entries, cell
        self._cell_of_owner.pop(cell.owner, None)
        cell.owner = 0
        cell.salt = ""
        cell.retention = RetentionClass.DISPOSABLE
