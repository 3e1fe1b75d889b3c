"""Takes over what a transition of the program has changed. Everything is compared before anything is changed (D-29)."""

from __future__ import annotations

from collections.abc import Collection

from ninfer.native import must
from ninfer.resources.catalog import Catalog
from ninfer.resources.claim import Claim
from ninfer.resources.private_catalog import Cell, CellState
from ninfer.resources.program_view import TransitionResult
from ninfer.resources.removal_reason import RemovalReason
from ninfer.resources.source_offer import SourceOffer


def claimed_deletes(cell: Cell, offer: SourceOffer, start: int) -> frozenset[int]:
    """What goes with the start of a request that takes the cell over: all that is deeper, and a consumed source."""
    deeper = {entry.checkpoint for entry in cell.entries if entry.frontier > start}
    return frozenset(deeper | {offer.checkpoint} if offer.use == "consume" else deeper - {offer.checkpoint})


def check_committed(catalog: Catalog, claim: Claim, result: TransitionResult, owner: int) -> None:
    """What was claimed has gone, what is left is what the program has, and nobody that is protected has lost anything.

    Under pressure a plan may also give up shallower checkpoints of the continuation that is taken over.
    """
    assert result.end == "committed", result.end
    removed = frozenset(result.removed)
    _check_bystanders(catalog, claim, removed)
    if claim.replaces is not None:
        assert set(catalog.checkpoints_of(claim.replaces)) <= removed, (claim, removed)
    if claim.takes_owner:
        cell = catalog.cells[claim.cell_number]
        before = {entry.checkpoint for entry in cell.entries}
        assert claim.deletes <= removed, (removed, claim.deletes)
        assert claim.source_goes == (claim.source in removed), (claim.source, removed)
        assert owner == cell.owner, (owner, cell.owner)
        found = frozenset(must(catalog.view.owner(owner)).checkpoints)
        renamed = {one[0] for one in result.shortened}, {one[1] for one in result.shortened}
        assert found == before - removed - renamed[0] | (found & renamed[1]), (found, before, removed)


def check_aborted(catalog: Catalog, claim: Claim, result: TransitionResult) -> None:
    """An aborted start may have lost what lies deeper than its source, never the source."""
    assert result.end != "committed", result.end
    removed = frozenset(result.removed)
    _check_bystanders(catalog, claim, removed)
    assert claim.offer is None or claim.offer.checkpoint not in removed, claim.offer


def apply_removals(catalog: Catalog, claim: Claim, result: TransitionResult, own: RemovalReason) -> None:
    """own: why what the claim names has gone. Everything else has gone for memory."""
    for before, after, _ in result.shortened:
        catalog.replace(before, after)
    replaced = set() if claim.replaces is None else set(catalog.checkpoints_of(claim.replaces))
    for checkpoint in result.removed:
        reason = RemovalReason.CATALOG_FULL if checkpoint in replaced else RemovalReason.PRESSURE
        catalog.remove(checkpoint, own if checkpoint in claim.deletes else reason)


def _check_bystanders(catalog: Catalog, claim: Claim, removed: Collection[int]) -> None:
    touched = {catalog.place_of[checkpoint].owner for checkpoint in removed if checkpoint not in claim.deletes}
    for owner in touched:
        if not _is_own_source(claim, owner) and owner != claim.replaces:
            cell = catalog.cells.of_owner(owner)
            assert cell is None or cell.state is CellState.IDLE, cell
            assert not catalog.edges.protects(owner), owner


def _is_own_source(claim: Claim, owner: int) -> bool:
    return claim.offer is not None and claim.offer.owner == owner
