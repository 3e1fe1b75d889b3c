"""Everything that is kept, and the few moves that change it. Other files decide; this one keeps order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from ninfer.native import must
from ninfer.resources.anchor_retention import endpoint_becomes_anchor
from ninfer.resources.catalog_entry import CatalogEntry, Digest
from ninfer.resources.checkpoint_kind import CheckpointKind
from ninfer.resources.context_cache_options import ContextCacheOptions
from ninfer.resources.demand_window import DemandWindow
from ninfer.resources.evidence import Evidence
from ninfer.resources.owner_edges import OwnerEdges
from ninfer.resources.prefix_index import PrefixIndex
from ninfer.resources.prefix_marks import PrefixMarks
from ninfer.resources.private_catalog import Cell, CellState, PrivateCatalog
from ninfer.resources.program_view import ProgramView
from ninfer.resources.removal_reason import LOSSES, RemovalReason
from ninfer.resources.session_index import SessionIndex
from ninfer.resources.shared_catalog import SharedCatalog, SharedPrefix
from ninfer.resources.tombstones import Tombstones

CREDIT_ADMISSIONS = 32
"""For how many admissions a declared shared prefix cannot be recycled, unless it was used before (E2)."""
_SPARE_ROWS = 8
"""Of a cell, beside its anchors: one for each other kind, and some for what waits to be deleted."""

Place = Cell | SharedPrefix


def deepest(place: Place) -> CatalogEntry | None:
    if isinstance(place, SharedPrefix):
        return place.entry
    return place.entries[-1] if place.entries else None


class Catalog:
    """Storage of fixed sizes. `epoch` counts uses, `admissions` what became active."""

    def __init__(self, options: ContextCacheOptions, view: ProgramView, has_state: bool) -> None:
        cells, shared = options.max_private_continuations, options.max_shared_prefixes
        rows_per_cell = options.max_long_anchors_per_continuation + _SPARE_ROWS
        self.options = options
        self.view = view
        self.has_state = has_state
        self.cells = PrivateCatalog(cells, rows_per_cell)
        self.shared = SharedCatalog(shared, cells * rows_per_cell)
        self.index = PrefixIndex(cells * rows_per_cell + shared)
        self.marks = PrefixMarks(cells + shared)  # a row per cell, then per place of a shared prefix
        self.sessions = SessionIndex()
        self.edges = OwnerEdges()
        self.demand = DemandWindow()
        self.tombstones = Tombstones()
        self.removed: Counter[RemovalReason] = Counter()
        self.place_of: dict[int, Place] = {}
        self.entry_of_row: dict[int, CatalogEntry] = {}
        self.doomed: dict[int, None] = {}
        self.epoch = 0
        self.admissions = 0

    def next_epoch(self) -> int:
        self.epoch += 1
        return self.epoch

    def entry(self, checkpoint: int) -> CatalogEntry:
        place = self.place_of[checkpoint]
        if isinstance(place, SharedPrefix):
            return place.entry
        return next(entry for entry in place.entries if entry.checkpoint == checkpoint)

    def checkpoints_of(self, owner: int) -> list[int]:
        """Of an owner that the catalog knows; else none."""
        cell, prefix = self.cells.of_owner(owner), self.shared.of_owner(owner)
        if prefix is not None:
            return [prefix.entry.checkpoint]
        return [] if cell is None else [entry.checkpoint for entry in cell.entries]

    def add_private(self, cell: Cell, checkpoint: int, kind: CheckpointKind) -> CatalogEntry:
        """A new entry of the cell at the checkpoint's own frontier."""
        entry = self._entered(checkpoint, kind, cell.free_rows()[0])
        cell.entries.append(entry)
        cell.entries.sort(key=lambda one: one.frontier)
        self.place_of[checkpoint] = cell
        return entry

    def add_shared(self, checkpoint: int, evidence: Evidence, salt: str) -> SharedPrefix:
        owner = must(self.view.checkpoint(checkpoint)).owner
        entry = self._entered(checkpoint, CheckpointKind.SHARED_STABLE_PREFIX, self.shared.next_row())
        prefix = self.shared.add(owner, entry, evidence, salt, self.next_epoch())
        if evidence.is_declared:
            prefix.credit_until = self.admissions + CREDIT_ADMISSIONS
        self.place_of[checkpoint] = prefix
        self.note_marks(prefix)
        return prefix

    def replace(self, before: int, after: int) -> None:
        """A shortened checkpoint: another handle, another frontier, the same place."""
        entry = self.entry(before)
        place = self.place_of.pop(before)
        if self.doomed.pop(before, before) is None:
            self.doomed[after] = None
        entry.checkpoint = after
        entry.frontier, entry.digest = self._identity(after)
        self.index.set(entry.row, entry.frontier, entry.digest)
        self.place_of[after] = place
        self._trim_marks(place)

    def remove(self, checkpoint: int, reason: RemovalReason) -> None:
        """The program does not have it any more. A cell whose last entry goes is freed, unless a request has it."""
        entry = self.entry(checkpoint)
        place = self.place_of.pop(checkpoint)
        self.removed[reason] += 1
        if reason in LOSSES:
            self.tombstones.add(entry.frontier, entry.digest)
            if not self.has_state and entry is deepest(place):
                self.tombstones.add_marks(self.marks, self.marks_row(place))
        self.doomed.pop(checkpoint, None)
        self.index.clear(entry.row)
        del self.entry_of_row[entry.row]
        if isinstance(place, SharedPrefix):
            self.marks.clear(self.marks_row(place))
            self.shared.remove(place)
            return
        place.entries.remove(entry)
        self._trim_marks(place)
        if not place.entries and place.state is CellState.IDLE:
            self.free_cell(place)

    def doom(self, entry: CatalogEntry) -> None:
        """It serves nobody from now on, and waits for the engine to delete it."""
        entry.doomed = True
        self.doomed[entry.checkpoint] = None

    def remove_all(self, checkpoints: Iterable[int], reason: RemovalReason) -> None:
        for checkpoint in list(checkpoints):
            self.remove(checkpoint, reason)

    def keeps_endpoint(self, cell: Cell, entry: CatalogEntry) -> bool:
        """Whether this endpoint of the cell is worth an anchor (D-24)."""
        wanted = self.options.endpoint_anchors and self.options.max_long_anchors_per_continuation > 0
        return wanted and self.has_state and endpoint_becomes_anchor(cell.standing, entry)

    def free_cell(self, cell: Cell) -> None:
        self.sessions.unbind(cell.number)
        self.marks.clear(cell.number)
        self.cells.free(cell)

    def vacate(self, cell: Cell) -> None:
        """Its owner has gone, and the cell is promised to somebody else."""
        self.sessions.unbind(cell.number)
        self.marks.clear(cell.number)
        self.cells.vacate(cell)

    def note_marks(self, place: Place) -> None:
        """Digests of the deepest checkpoint's tokens, wherever its pages lie."""
        entry = deepest(place)
        assert entry is not None, place
        marks = self.marks.marks_up_to(entry.frontier)
        self.marks.set(self.marks_row(place), must(self.view.checkpoint_digests(entry.checkpoint, marks)))

    def marks_row(self, place: Place) -> int:
        return place.number if isinstance(place, Cell) else len(self.cells.cells) + place.number

    def _trim_marks(self, place: Place) -> None:
        """Nobody agrees with what is not there any more."""
        entry = deepest(place)
        self.marks.trim(self.marks_row(place), 0 if entry is None else entry.frontier)

    def _identity(self, checkpoint: int) -> tuple[int, Digest]:
        """Its frontier, and the digest of its tokens."""
        frontier = must(self.view.checkpoint(checkpoint)).frontier
        ((low, high),) = must(self.view.checkpoint_digests(checkpoint, np.array([frontier], dtype=np.int64)))
        return frontier, (int(low), int(high))

    def _entered(self, checkpoint: int, kind: CheckpointKind, row: int) -> CatalogEntry:
        assert checkpoint not in self.place_of, checkpoint
        entry = CatalogEntry(checkpoint, kind, *self._identity(checkpoint), row)
        self.index.set(row, entry.frontier, entry.digest)
        self.entry_of_row[row] = entry
        return entry
