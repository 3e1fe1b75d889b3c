"""The ways in which one prompt may start: from the root and from verified checkpoints, each with its captures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ninfer import native
from ninfer.engine.capacity import PAGE_TOKENS
from ninfer.engine.loop_parts import LoopParts
from ninfer.engine.request import Request
from ninfer.resources.capture_policy import CaptureCandidate, CaptureFacts, CaptureSituation, capture_candidates
from ninfer.resources.source_offer import SourceOffer


@dataclass(frozen=True)
class StartOption:
    """offer: None for the root. captures: what the prefill will leave above the candidate's frontier."""

    candidate: native.AdmissionCandidate
    offer: SourceOffer | None
    captures: tuple[CaptureCandidate, ...]

    def publication(self, request: Request, most_pages: int) -> native.Publication:
        """With a page for each capture that falls inside one, but no more than these."""
        plan, pages = request.plan, min(self.capture_pages, most_pages)
        return native.Publication.admission(
            self.candidate, request.prompt, plan.reserved_tokens, plan.params.needs_counts, pages
        )

    @property
    def takes_owner(self) -> bool:
        return self.offer is not None and self.offer.takes_owner

    @property
    def capture_pages(self) -> int:
        return sum(_pages(capture) for capture in self.captures)

    def captures_within(self, most_pages: int) -> tuple[CaptureCandidate, ...]:
        return _most_valuable(self.captures, most_pages)


class StartOptions:
    """Asks the catalog for sources and the program whether they are what the prompt begins with."""

    coming: int = 0
    """Tokens of the deepest source of the last request that was left out because its image is still to come."""

    def __init__(self, parts: LoopParts) -> None:
        self._parts = parts
        self._has_state = parts.statistics.state_image_bytes > 0

    def of(self, request: Request, *, only_place: bool = False) -> list[StartOption]:
        """The root first. only_place: see ResourceManager.shortlist."""
        catalog = self._parts.catalog
        offers: list[SourceOffer] = []
        if request.key.reads and not request.sources_lost:
            markers = request.boundaries.markers
            offers = catalog.shortlist(request.prompt, request.key, markers, only_place=only_place)
        sources = [(offer.checkpoint, offer.use) for offer in offers]
        candidates = native.must(self._parts.program.candidates(request.prompt, sources))
        found = {candidate.checkpoint for candidate in candidates}
        missing = [offer for offer in offers if offer.checkpoint not in found]
        self.coming = max((offer.frontier for offer in missing if self._is_coming(offer)), default=0)
        request.capture_facts = catalog.capture_facts(request.prompt, request.key, request.boundaries)
        return [
            StartOption(candidate, offer, self._captures(request, candidate, offer, request.capture_facts))
            for candidate, offer in _paired(candidates, offers)
        ]

    def _is_coming(self, offer: SourceOffer) -> bool:
        return not native.must(self._parts.program.checkpoint(offer.checkpoint)).valid

    def _captures(
        self, request: Request, candidate: native.AdmissionCandidate, offer: SourceOffer | None, facts: CaptureFacts
    ) -> tuple[CaptureCandidate, ...]:
        situation = CaptureSituation(
            prompt_tokens=request.prompt.size,
            base=candidate.frontier,
            surviving=self._parts.catalog.surviving_frontiers(offer, candidate.frontier),
            publishes=request.key.publishes,
            has_state=self._has_state,
            structural=request.structural,
        )
        found = capture_candidates(request.boundaries, situation, facts, self._parts.catalog.options)
        room = self._parts.statistics.pages_total - -(-request.plan.reserved_tokens // PAGE_TOKENS)
        return _most_valuable(found, room)


def _paired(
    candidates: list[native.AdmissionCandidate], offers: list[SourceOffer]
) -> Iterator[tuple[native.AdmissionCandidate, SourceOffer | None]]:
    """Each candidate with its offer; those that do not match the prompt have none. The use may be another one: what is
    cut cannot be continued, only consumed."""
    left = iter(offers)
    for candidate in candidates:
        if candidate.is_root:
            yield candidate, None
            continue
        offer = next(one for one in left if _is_of(candidate, one))
        yield candidate, replace(offer, use=candidate.use)


def _is_of(candidate: native.AdmissionCandidate, offer: SourceOffer) -> bool:
    uses = {offer.use, "consume"} if candidate.truncated and offer.use == "continue" else {offer.use}
    return candidate.checkpoint == offer.checkpoint and candidate.use in uses


def _pages(capture: CaptureCandidate) -> int:
    return int(capture.frontier % PAGE_TOKENS != 0)


def _most_valuable(captures: tuple[CaptureCandidate, ...], pages: int) -> tuple[CaptureCandidate, ...]:
    """Those for which there are pages: the most valuable, of one value the deepest."""
    kept: set[int] = set()
    for capture in sorted(captures, key=lambda one: (-one.value, -one.frontier)):
        if _pages(capture) <= pages:
            pages -= _pages(capture)
            kept.add(capture.frontier)
    return tuple(capture for capture in captures if capture.frontier in kept)
