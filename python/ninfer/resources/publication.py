"""What a running or finished request adds to the catalog."""

from __future__ import annotations

import enum

from ninfer.native import must
from ninfer.resources.anchor_retention import rearranged
from ninfer.resources.catalog import Catalog
from ninfer.resources.checkpoint_kind import CheckpointKind
from ninfer.resources.claim import Claim, ClaimState
from ninfer.resources.evidence import Evidence
from ninfer.resources.memory_victims import shared_victims
from ninfer.resources.private_catalog import Cell, CellState
from ninfer.resources.retention import RetentionClass
from ninfer.resources.session_index import session_name

_ROWS_FOR_CAPTURE = 2
"""One for the capture, one that stays for the end of the request."""


class CaptureRoom(enum.Enum):
    """Whether the catalog has a place for a capture. RECYCLED: when one of the shared victims has gone (C8)."""

    FREE = "free"
    NONE = "none"
    RECYCLED = "recycled"


def capture_room(catalog: Catalog, claim: Claim, *, shared: bool) -> CaptureRoom:
    if not shared:
        rows = 0 if claim.cell is None else len(catalog.cells[claim.cell].free_rows())
        return CaptureRoom.FREE if rows >= _ROWS_FOR_CAPTURE else CaptureRoom.NONE
    if catalog.shared.has_room:
        return CaptureRoom.FREE
    return CaptureRoom.RECYCLED if shared_victims(catalog, claim) else CaptureRoom.NONE


def adopt_capture(catalog: Catalog, claim: Claim, checkpoint: int, kind: CheckpointKind, *, was_endpoint: bool) -> None:
    assert claim.state is ClaimState.ACTIVE, claim.state
    cell = catalog.cells[claim.cell_number]
    assert len(cell.free_rows()) >= _ROWS_FOR_CAPTURE, "capture_room was not asked"
    catalog.add_private(cell, checkpoint, kind).was_endpoint = was_endpoint
    rearrange(catalog, cell, claim.rewritten_from)


def adopt_shared_capture(catalog: Catalog, claim: Claim, checkpoint: int, evidence: Evidence) -> None:
    assert claim.state is ClaimState.ACTIVE, claim.state
    assert catalog.shared.has_room, "capture_room was not asked"
    claim.published |= {catalog.add_shared(checkpoint, evidence, claim.key.salt).owner}


def adopt_finish(catalog: Catalog, claim: Claim, owner: int, kind: CheckpointKind, *, canonical: int) -> None:
    cell = catalog.cells[claim.cell_number]
    assert cell.owner == owner, (cell.owner, owner)
    known = {entry.checkpoint for entry in cell.entries}
    found = set(must(catalog.view.owner(owner)).checkpoints)
    assert known < found and len(found) == len(known) + 1, (known, found)
    claim.move_to(ClaimState.ENDED)
    catalog.edges.end(claim.request_id)
    entry = catalog.add_private(cell, (found - known).pop(), kind)
    entry.canonical = canonical if canonical < entry.frontier else None
    cell.move_to(CellState.IDLE)
    cell.used_at = catalog.next_epoch()
    rearrange(catalog, cell, claim.rewritten_from)
    catalog.note_marks(cell)
    if kind is CheckpointKind.SESSION_ENDPOINT:
        _classify(catalog, claim, cell)


def _classify(catalog: Catalog, claim: Claim, cell: Cell) -> None:
    """D-20. Not for a broken-off prefill: what it took over keeps class and binding, all else is Disposable."""
    name = session_name(claim.key)
    if catalog.sessions.name_of(cell.number) != name:
        catalog.sessions.unbind(cell.number)  # it was taken over, since there was no other place
    if name is None:
        extended = claim.offer is not None and claim.offer.cell is not None
        cell.retention = RetentionClass.RECENT_PRIVATE if extended else RetentionClass.DISPOSABLE
        return
    if catalog.sessions.is_newer(name, claim.request_id):
        former = catalog.sessions.bind(name, cell.number, claim.request_id)
        if former is not None:
            catalog.cells[former].retention = RetentionClass.DISPOSABLE
    is_latest = catalog.sessions.cell_of(name) == cell.number
    cell.retention = RetentionClass.LIVE_SESSION if is_latest else RetentionClass.DISPOSABLE


def rearrange(catalog: Catalog, cell: Cell, rewritten_from: int | None = None) -> None:
    """After a checkpoint has joined the cell: what it is for now, and which ones nobody needs any more.
    rewritten_from: of the claim."""
    standing = cell.standing
    change = rearranged(standing, catalog.options.max_long_anchors_per_continuation, rewritten_from)
    for entry in standing:
        if entry.checkpoint in change.to_anchors:
            entry.was_endpoint = entry.kind is CheckpointKind.SESSION_ENDPOINT
            entry.kind = CheckpointKind.LONG_ANCHOR
        if entry.checkpoint in change.to_delete:
            catalog.doom(entry)
