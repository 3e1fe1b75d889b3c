"""The catalog's one door. Only the worker thread calls it.

The order of calls for a request:

    offers = shortlist(prompt, key)                  # then Program.candidates, a planning session, a plan
    claim = claim(id, key, offer)                    # before Program.start_transaction; None: no cell, see cell_victims
    adopt_admission(claim, result, owner)            # or abort_admission(claim, result)
    capture_room(claim, shared=...)                  # then Program.capture
    adopt_capture(claim, checkpoint, kind)           # or adopt_shared_capture(claim, checkpoint, evidence)
    adopt_finish(claim, owner, kind)                 # or discard(claim)

The engine deletes what `doomed` names when the program lets it, and tells `note_removed`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Sequence

from ninfer.resources import catalog_report, claims, discarding, memory_victims, publication
from ninfer.resources.cache_value import CacheValue
from ninfer.resources.capture_policy import Boundaries, CaptureFacts
from ninfer.resources.capture_value import gives_way
from ninfer.resources.catalog import Catalog
from ninfer.resources.catalog_facts import capture_facts
from ninfer.resources.checkpoint_kind import CheckpointKind
from ninfer.resources.claim import Claim
from ninfer.resources.context_cache_options import ContextCacheOptions
from ninfer.resources.divergence import AdmittedPrompt, explain_shortfall
from ninfer.resources.evidence import Evidence
from ninfer.resources.prefix_index import digests_at
from ninfer.resources.program_view import ProgramView, PromptIdentity, TransitionResult
from ninfer.resources.publication import CaptureRoom
from ninfer.resources.removal_reason import RemovalReason
from ninfer.resources.reuse_key import ReuseKey
from ninfer.resources.reuse_report import ReuseReason, Shortfall
from ninfer.resources.shortlist import Shortlist
from ninfer.resources.slot_facts import CatalogStatistics, SlotFacts
from ninfer.resources.source_offer import SourceOffer
from ninfer.resources.valuation import cache_value


class ResourceManager:
    """Adoption cannot fail: what it needs is there since the claim. A contradiction is a bug and asserts."""

    def __init__(self, options: ContextCacheOptions, view: ProgramView, *, has_state: bool = True) -> None:
        """has_state: whether there are recurrent layers. Without, deeper checkpoints serve shorter prefixes (D-9)."""
        self._catalog = Catalog(options, view, has_state)
        self._short: Counter[ReuseReason] = Counter()
        self._captures_without_room = 0

    @property
    def options(self) -> ContextCacheOptions:
        return self._catalog.options

    # Sources

    def shortlist(
        self, prompt: PromptIdentity, key: ReuseKey, markers: Collection[int] = (), *, only_place: bool = False
    ) -> list[SourceOffer]:
        """At most 15, the deepest first; empty if the key does not read. markers: the request's explicit boundaries.
        only_place: there is no cell but those of its sources, so these are taken over, whosever they are."""
        if not key.reads or not self.options.enabled:
            return []
        return Shortlist(self._catalog, prompt, key, markers, only_place=only_place).offers()

    def protected_owners(self, claim: Claim | None = None) -> list[int]:
        """Handles of the owners that no plan may touch: active or starting requests have edges to them.

        claim: of the request whose plan it is, if it has one already. Its own edge does not stand in its way.
        """
        edges = self._catalog.edges
        return list(edges.counts() if claim is None else edges.counts_without(claim.request_id))

    def all_owners(self) -> set[int]:
        """Of everything that is kept or running with a cell."""
        cells, shared = self._catalog.cells, self._catalog.shared
        return {place.owner for place in (*cells, *shared) if place.owner}

    # Claims

    def has_free_cell(self) -> bool:
        return self._catalog.cells.free_count > 0

    def cell_victims(self, offers: Sequence[SourceOffer] = ()) -> list[int]:
        """Owners one of which has to go when no cell is free, in this order: with the transaction of the request that
        gets its cell (claim's replaces).

        Least recently used of Disposable, then of RecentPrivate, then of LiveSession; only after all others one of the
        offers', and the first offer's last. None: all are active, claimed or protected; one will be free when a request
        has ended.
        """
        return claims.cell_victims(self._catalog, offers)

    def claim(
        self,
        request_id: int,
        key: ReuseKey,
        offer: SourceOffer | None,
        start: int | None = None,
        replaces: int | None = None,
    ) -> Claim | None:
        """None: no cell is free, and nothing has changed. request_id grows by arrival: the publication order (C3).

        start: AdmissionCandidate.frontier, if fewer tokens than the offer's. replaces: the owner that the plan evicts
        for its cell.
        """
        return claims.make_claim(self._catalog, request_id, key, offer, claims.WantedPlace(start, replaces))

    def adopt_admission(
        self, claim: Claim, result: TransitionResult, owner: int, facts: CaptureFacts | None = None
    ) -> None:
        """The result committed. owner: SequenceSummary.owner. facts: of capture_facts, to remember what was named."""
        claims.adopt_admission(self._catalog, claim, result, owner, facts)

    def abort_admission(self, claim: Claim, result: TransitionResult | None) -> None:
        """Gives everything back. result: of a transaction that aborted; None if none was started."""
        claims.abort_admission(self._catalog, claim, result)

    def discard(self, claim: Claim) -> None:
        """The sequence was closed: its owner is gone with all its checkpoints. One that was taken over, and for which
        nothing was computed since, the program has given back: it is idle again, without what was deeper.
        """
        discarding.discard(self._catalog, claim)

    # Publications

    def surviving_frontiers(self, offer: SourceOffer | None, start: int | None = None) -> frozenset[int]:
        """Of the checkpoints that the request's continuation has when it starts from this offer; start as in claim."""
        return claims.surviving_frontiers(self._catalog, offer, start)

    def capture_facts(self, prompt: PromptIdentity, key: ReuseKey, boundaries: Boundaries) -> CaptureFacts:
        """For capture_policy.capture_candidates; once per request, whatever the number of candidates."""
        return capture_facts(self._catalog, prompt, key, boundaries)

    def capture_room(self, claim: Claim, *, shared: bool) -> CaptureRoom:
        """Whether a capture can be adopted now, or after one of shared_victims was released (C8, SHARED_FULL)."""
        return publication.capture_room(self._catalog, claim, shared=shared)

    def note_capture_without_room(self) -> None:
        """One was skipped because the catalog has no place for it."""
        self._captures_without_room += 1

    def adopt_capture(self, claim: Claim, checkpoint: int, kind: CheckpointKind, *, was_endpoint: bool = False) -> None:
        """A checkpoint of the request's own continuation, after capture_room. The program's summary tells the rest."""
        publication.adopt_capture(self._catalog, claim, checkpoint, kind, was_endpoint=was_endpoint)

    def adopt_shared_capture(self, claim: Claim, checkpoint: int, evidence: Evidence) -> None:
        """A checkpoint in a shared owner of its own (Program.capture with own=False), after capture_room."""
        publication.adopt_shared_capture(self._catalog, claim, checkpoint, evidence)

    def adopt_finish(self, claim: Claim, owner: int, kind: CheckpointKind, *, canonical: int = sys.maxsize) -> None:
        """The sequence is a checkpoint of this owner now. canonical: so many of its tokens come back in a history.

        A session_endpoint takes part in the session's binding; a long_anchor (a broken-off prefill, C11) changes no
        binding: an owner that was taken over keeps its own, any other is anonymous and Disposable.
        """
        publication.adopt_finish(self._catalog, claim, owner, kind, canonical=canonical)

    # Removals

    def memory_victims(self, claim: Claim) -> list[int]:
        """Owners to release, in this order, until the end of this request has room; report them with PRESSURE."""
        return memory_victims.memory_victims(self._catalog, claim)

    def cheap_victims(self, claim: Claim) -> list[int]:
        """Those among them that go before the request's own anchors."""
        return memory_victims.cheap_victims(self._catalog, claim)

    def shared_victims(self, claim: Claim) -> list[int]:
        """Only the shared prefixes among them, without those that the request itself lies behind."""
        return memory_victims.shared_victims(self._catalog, claim)

    def own_victims(self, claim: Claim, kind: CheckpointKind) -> list[int]:
        """Checkpoints of the request's own continuation that are worth less than one of this kind, the least first.
        Report them with PRESSURE."""
        if claim.cell is None:
            return []
        return [entry.checkpoint for entry in gives_way(self._catalog.cells[claim.cell].entries, kind)]

    def note_unkept(self, prompt: PromptIdentity, tokens: int) -> None:
        """The end of a request found no room: whoever asks again after so many tokens of it is told EVICTED."""
        for frontier, digest in digests_at(prompt, [tokens] if tokens > 0 else []):
            self._catalog.tombstones.add(frontier, digest)

    def doomed(self) -> tuple[int, ...]:
        """Checkpoints to delete with Program.delete_checkpoint as soon as it does not refuse; then note_removed."""
        return tuple(self._catalog.doomed)

    def note_removed(self, checkpoints: Collection[int], reason: RemovalReason) -> None:
        """These are gone from the program (deleted, or a failed copy's). Unknown handles are ignored."""
        known = [checkpoint for checkpoint in checkpoints if checkpoint in self._catalog.place_of]
        self._catalog.remove_all(known, reason)

    def note_released(self, owner: int, reason: RemovalReason) -> None:
        """This inactive owner was released with all its checkpoints."""
        self._catalog.remove_all(self._catalog.checkpoints_of(owner), reason)

    def cache_value(self) -> CacheValue:
        """What everything that is kept is worth, for a planner that has to choose who gives way."""
        return cache_value(self._catalog)

    # Reports

    def divergence(self, admitted: AdmittedPrompt) -> Shortfall:
        """Why not more will be reused; compares at most 16 continuations. Ask before the transaction starts, which
        may delete what is compared."""
        shortfall = explain_shortfall(self._catalog, admitted)
        if shortfall.reason is not None:
            self._short[shortfall.reason] += 1
        return shortfall

    def slots(self) -> tuple[SlotFacts, ...]:
        """All cells that are not empty."""
        return catalog_report.slots(self._catalog)

    def statistics(self) -> CatalogStatistics:
        return catalog_report.statistics(self._catalog, self._short, self._captures_without_room)

    def check_invariants(self) -> None:
        """Asserts that counts, edges, bindings, rows and the program's owners agree. For tests and idle moments."""
        catalog_report.check_invariants(self._catalog)
