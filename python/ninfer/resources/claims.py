"""How a request comes to hold a part of the catalog and gives it back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ninfer.resources.adoption import apply_removals, check_aborted, check_committed, claimed_deletes
from ninfer.resources.capture_policy import CaptureFacts
from ninfer.resources.catalog import Catalog
from ninfer.resources.claim import Claim, ClaimState
from ninfer.resources.private_catalog import CellState
from ninfer.resources.program_view import TransitionResult
from ninfer.resources.removal_reason import RemovalReason
from ninfer.resources.reuse_key import ReuseKey
from ninfer.resources.session_index import session_name
from ninfer.resources.source_offer import SourceOffer


def cell_victims(catalog: Catalog, offers: Sequence[SourceOffer]) -> list[int]:
    """By retention class, then by last use. The sources of the request that wants the cell go after all others, the
    first offer's at the very last: whoever waits for a cell that only it stands in the way of waits for ever."""
    spared = {offer.owner: 1 for offer in offers}
    spared.update({offer.owner: 2 for offer in offers[:1]})
    readers = catalog.edges.counts()
    idle = [cell for cell in catalog.cells if cell.state is CellState.IDLE and cell.owner not in readers]
    idle.sort(key=lambda cell: (spared.get(cell.owner, 0), cell.retention, cell.used_at))
    return [cell.owner for cell in idle]


@dataclass(frozen=True)
class WantedPlace:
    """start: tokens that the request really saves, if fewer than the checkpoint has. replaces: the owner
    whose cell it gets, which goes with the start."""

    start: int | None = None
    replaces: int | None = None


def make_claim(
    catalog: Catalog, request_id: int, key: ReuseKey, offer: SourceOffer | None, place: WantedPlace
) -> Claim | None:
    start = place.start
    if offer is not None and start is not None and start < offer.frontier and offer.takes_owner:
        offer = replace(offer, use="consume")  # what is cut does not stay (candidate_verification.h)
    if offer is not None and offer.takes_owner:
        cell = catalog.cells[offer.cell if offer.cell is not None else -1]
        assert cell.owner == offer.owner and key.publishes and not catalog.edges.protects(offer.owner), offer
        cell.move_to(CellState.TAKEN)
        deletes = claimed_deletes(cell, offer, offer.frontier if start is None else start)
        claim = Claim(request_id, key, offer, cell.number, deletes)
    elif place.replaces is not None:
        given = catalog.cells.of_owner(place.replaces)
        assert given is not None and key.publishes and not catalog.edges.protects(given.owner), place
        given.move_to(CellState.TAKEN)
        claim = Claim(request_id, key, offer, given.number, replaces=given.owner)
    else:
        reserved = catalog.cells.reserve() if key.publishes else None
        if key.publishes and reserved is None:
            return None
        claim = Claim(request_id, key, offer, None if reserved is None else reserved.number)
    if offer is not None:
        catalog.edges.add(request_id, offer.owner)
    return claim


def surviving_frontiers(catalog: Catalog, offer: SourceOffer | None, start: int | None) -> frozenset[int]:
    if offer is None or offer.cell is None or not offer.takes_owner:
        return frozenset()
    start = offer.frontier if start is None else start
    consumed = offer.use == "consume" or start < offer.frontier
    return frozenset(
        entry.frontier
        for entry in catalog.cells[offer.cell].standing
        if entry.frontier <= start and not (consumed and entry.checkpoint == offer.checkpoint)
    )


def adopt_admission(
    catalog: Catalog, claim: Claim, result: TransitionResult, owner: int, facts: CaptureFacts | None
) -> None:
    check_committed(catalog, claim, result, owner)
    claim.move_to(ClaimState.ACTIVE)
    if claim.key.reads or claim.key.publishes:
        _note_demand(catalog, claim, facts)
    if claim.source is not None and claim.source_goes:
        claim.consumed = catalog.entry(claim.source)
    apply_removals(catalog, claim, result, RemovalReason.CONSUMED)
    _note_use(catalog, claim)
    if claim.cell is None:
        return
    cell = catalog.cells[claim.cell]
    cell.move_to(CellState.ACTIVE)
    if claim.takes_owner:
        catalog.edges.end(claim.request_id)  # the owner is the request's own now
    else:
        if claim.replaces is not None:
            catalog.vacate(cell)
        catalog.cells.give_owner(cell, owner)
        cell.salt = claim.key.salt


def abort_admission(catalog: Catalog, claim: Claim, result: TransitionResult | None) -> None:
    if result is not None:
        check_aborted(catalog, claim, result)
    claim.move_to(ClaimState.ENDED)
    catalog.edges.end(claim.request_id)
    if claim.takes_owner or claim.replaces is not None:
        catalog.cells[claim.cell_number].move_to(CellState.IDLE)
    elif claim.cell is not None:
        catalog.free_cell(catalog.cells[claim.cell])
    if result is not None:
        apply_removals(catalog, claim, result, RemovalReason.DISCARDED)


def _note_demand(catalog: Catalog, claim: Claim, facts: CaptureFacts | None) -> None:
    """What the request could have used (D-22): its source, the shared prefixes on the way to it, what it may create.
    Before its source goes."""
    used = {claim.source} if claim.source is not None else set()
    for owner in claim.extends:
        used.update(catalog.checkpoints_of(owner))
    entries = [catalog.entry(checkpoint) for checkpoint in used]
    keys = {(entry.frontier, entry.digest) for entry in entries} | set(facts.named if facts else ())
    catalog.demand.record(session_name(claim.key) or ("", "", str(claim.request_id)), keys)


def _note_use(catalog: Catalog, claim: Claim) -> None:
    """Makes the source and all shared prefixes on the way to it recently used; that ends a declared one's credit."""
    if not (claim.key.reads or claim.key.publishes):
        return  # a request without the cache neither uses nor ages anything
    catalog.admissions += 1
    epoch = catalog.next_epoch()
    if claim.offer is not None and claim.offer.cell is not None:
        catalog.cells[claim.offer.cell].used_at = epoch
    for owner in claim.extends | ({claim.offer.owner} if claim.offer is not None else set()):
        prefix = catalog.shared.of_owner(owner)
        if prefix is not None:
            prefix.used_at = epoch
            prefix.credit_until = 0
