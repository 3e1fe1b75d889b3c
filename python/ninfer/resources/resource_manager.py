"""The catalog's one door. Only the worker thread calls it.

The order of calls for a request:

    offers = shortlist(prompt, key)                  # then Program.candidates, a planning session, a plan
    claim = claim(id, key, offer)                    # before Program.start_transaction; None: no cell, see cell_victim
    adopt_admission(claim, result, owner)            # or abort_admission(claim, result)
    capture_room(claim, shared=...)                  # then Program.capture
    adopt_capture(claim, checkpoint, ...)
    adopt_finish(claim, owner, kind)                 # or discard(claim)

The engine deletes what `doomed` names when the program lets it, and tells `note_removed`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NoReturn

from ninfer.native import ResourceResult
from ninfer.resources.capture_policy import Boundaries, CaptureFacts, Evidence
from ninfer.resources.checkpoint_kind import CheckpointKind
from ninfer.resources.claim import Claim
from ninfer.resources.context_cache_options import ContextCacheOptions
from ninfer.resources.program_view import ProgramView, PromptIdentity
from ninfer.resources.removal_reason import RemovalReason
from ninfer.resources.reuse_key import ReuseKey
from ninfer.resources.reuse_report import Shortfall
from ninfer.resources.slot_facts import CatalogStatistics, SlotFacts
from ninfer.resources.source_offer import SourceOffer


def assert_never_built() -> NoReturn:
    raise RuntimeError("this part of the catalog is an interface so far")


class ResourceManager:
    """Adoption cannot fail: what it needs is there since the claim. A contradiction is a bug and asserts."""

    def __init__(self, options: ContextCacheOptions, view: ProgramView, *, has_state: bool = True) -> None:
        """has_state: whether there are recurrent layers. Without, deeper checkpoints serve shorter prefixes (D-9)."""
        assert_never_built()

    # Sources

    def shortlist(self, prompt: PromptIdentity, key: ReuseKey, markers: Collection[int] = ()) -> list[SourceOffer]:
        """At most 15, the deepest first; empty if the key does not read. markers: the request's explicit boundaries."""
        assert_never_built()

    def protected_owners(self) -> list[int]:
        """Handles of inactive owners that no plan may touch: they have edges of active or claiming requests."""
        assert_never_built()

    # Claims

    def has_free_cell(self) -> bool:
        assert_never_built()

    def cell_victim(self, offers: Sequence[SourceOffer] = ()) -> int | None:
        """The owner to release when no cell is free, never one of the offers'. Report it with CATALOG_FULL afterwards.

        Least recently used of Disposable, then of RecentPrivate, then of LiveSession. None: all are active, claimed or
        protected; one will be free when a request has ended.
        """
        assert_never_built()

    def claim(self, request_id: int, key: ReuseKey, offer: SourceOffer | None) -> Claim | None:
        """None: no cell is free, and nothing has changed. request_id grows by arrival: the publication order (C3)."""
        assert_never_built()

    def adopt_admission(
        self, claim: Claim, result: ResourceResult, owner: int, proposed: Sequence[tuple[int, tuple[int, int]]] = ()
    ) -> None:
        """The result committed. owner: SequenceSummary.owner. proposed: frontier and digest of grid points (C7)."""
        assert_never_built()

    def abort_admission(self, claim: Claim, result: ResourceResult | None) -> None:
        """Gives everything back. result: of a transaction that aborted; None if none was started."""
        assert_never_built()

    def discard(self, claim: Claim) -> None:
        """The sequence was closed: its owner is gone, with a taken-over source's checkpoints."""
        assert_never_built()

    # Publications

    def surviving_frontiers(self, offer: SourceOffer | None) -> frozenset[int]:
        """Of the checkpoints that the request's continuation has when it starts from this offer."""
        assert_never_built()

    def capture_facts(self, prompt: PromptIdentity, key: ReuseKey, boundaries: Boundaries) -> CaptureFacts:
        """For capture_policy.capture_candidates; once per request, whatever the number of candidates."""
        assert_never_built()

    def capture_room(self, claim: Claim, *, shared: bool, evidence: Evidence | None = None) -> bool | int:
        """Whether a capture can be adopted. A number: it can after this shared owner was released (C8, SHARED_FULL)."""
        assert_never_built()

    def adopt_capture(
        self,
        claim: Claim,
        checkpoint: int,
        kind: CheckpointKind,
        *,
        shared: bool,
        evidence: Evidence | None = None,
    ) -> None:
        """After capture_room. Frontier, digest and owner come from the program's summary."""
        assert_never_built()

    def adopt_finish(self, claim: Claim, owner: int, kind: CheckpointKind, *, canonical: bool = True) -> None:
        """The sequence is the owner's deepest checkpoint now. canonical: a later prompt can contain its output exactly.

        A session_endpoint takes part in the session's binding; a long_anchor (a broken-off prefill, C11) changes no
        binding: an owner that was taken over keeps its own, any other is anonymous and Disposable.
        """
        assert_never_built()

    # Removals

    def doomed(self) -> tuple[int, ...]:
        """Checkpoints to delete with Program.delete_checkpoint as soon as it does not refuse; then note_removed."""
        assert_never_built()

    def note_removed(self, checkpoints: Collection[int], reason: RemovalReason) -> None:
        """These are gone from the program (a released owner's, a failed copy's). Unknown handles are ignored."""
        assert_never_built()

    # Reports

    def divergence(
        self, prompt: PromptIdentity, key: ReuseKey, reused: int, boundaries: Boundaries, *, refused: int = 0
    ) -> Shortfall:
        """Why not more than `reused`; compares at most 16 owners. refused: the deepest frontier that did not fit."""
        assert_never_built()

    def slots(self) -> tuple[SlotFacts, ...]:
        """All cells that are not empty."""
        assert_never_built()

    def statistics(self) -> CatalogStatistics:
        assert_never_built()

    def check_invariants(self) -> None:
        """Asserts that counts, edges, bindings, rows and the program's owners agree. For tests and idle moments."""
        assert_never_built()
