"""What becomes of a continuation when its sequence was closed without a checkpoint."""

from __future__ import annotations

from collections.abc import Collection

from ninfer.native import Refusal
from ninfer.resources.catalog import Catalog
from ninfer.resources.claim import Claim, ClaimState
from ninfer.resources.private_catalog import Cell, CellState
from ninfer.resources.publication import rearrange
from ninfer.resources.removal_reason import RemovalReason


def discard(catalog: Catalog, claim: Claim) -> None:
    """The owner is gone, unless the request took it over and computed nothing: then the program has given it back."""
    assert claim.state is ClaimState.ACTIVE, claim.state
    claim.move_to(ClaimState.ENDED)
    catalog.edges.end(claim.request_id)
    if claim.cell is None:
        return
    cell = catalog.cells[claim.cell]
    left = catalog.view.owner(cell.owner)
    if isinstance(left, Refusal):
        catalog.remove_all([entry.checkpoint for entry in cell.entries], RemovalReason.DISCARDED)
        catalog.free_cell(cell)
    else:
        _take_back(catalog, claim, cell, left.checkpoints)


def _take_back(catalog: Catalog, claim: Claim, cell: Cell, found: Collection[int]) -> None:
    """Place, class and binding were never given up. A consumed source has a new handle, and is what it was."""
    assert claim.takes_owner, claim
    known = {entry.checkpoint for entry in cell.entries}
    new = set(found) - known
    assert known <= set(found) and len(new) == (claim.consumed is not None), (known, found, claim)
    if claim.consumed is not None:
        entry = catalog.add_private(cell, new.pop(), claim.consumed.kind)
        entry.was_endpoint, entry.canonical = claim.consumed.was_endpoint, claim.consumed.canonical
    cell.move_to(CellState.IDLE)
    rearrange(catalog, cell)
    catalog.note_marks(cell)
