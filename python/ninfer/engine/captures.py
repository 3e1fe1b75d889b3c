"""Keeps checkpoints of a prompt while it is computed, at the frontiers that its admission chose."""

from __future__ import annotations

from ninfer import native
from ninfer.engine.loop_parts import LoopParts
from ninfer.engine.refusals import lacks_room, passes
from ninfer.engine.removals import MadeRoom, Removals
from ninfer.engine.request import Request
from ninfer.resources.capture_policy import CaptureCandidate
from ninfer.resources.checkpoint_kind import CheckpointKind
from ninfer.resources.publication import CaptureRoom
from ninfer.resources.removal_reason import RemovalReason

# Where the image of a checkpoint goes, in this order.
_TIERS = ("device", "host")
_WAITS = "waits"
# To these the next turn comes back, whatever a client rewrites: they are worth more than an old shared prefix.
_DISPLACING = frozenset({CheckpointKind.TURN_CLOSURE, CheckpointKind.RESPONSE_REPLAY})


class Captures:
    """A capture is optional: whatever is in its way, it is skipped and counted, and the prompt goes on. No conversation
    gives way to one. Shared prefixes do: for a place among them, and to a turn closure or response replay. So does what
    the request has kept of itself and is worth less.
    """

    def __init__(self, parts: LoopParts, removals: Removals) -> None:
        self._parts = parts
        self._removals = removals
        self.taken = 0
        self.skipped: dict[str, int] = {}

    def take(self, request: Request) -> bool:
        """Those of the frontier that the request has just computed. False: one waits for the copies of the one
        before."""
        while request.captures and request.captures[0].frontier <= request.prefilled:
            capture = request.captures[0]
            assert capture.frontier == request.prefilled, (capture, request.prefilled)
            skipped = self._capture(request, capture)
            if skipped is _WAITS:
                return False
            del request.captures[0]
            if skipped is None:
                self.taken += 1
            else:
                self.skipped[skipped] = self.skipped.get(skipped, 0) + 1
        return True

    def _capture(self, request: Request, capture: CaptureCandidate) -> str | None:
        """Why it was not taken, if it was not, or that it waits."""
        assert request.claim is not None, request.id
        catalog = self._parts.catalog
        room = catalog.capture_room(request.claim, shared=not capture.own)
        if room is not CaptureRoom.FREE:
            made = MadeRoom.NO if room is CaptureRoom.NONE else self._recycle(request, capture)
            if made is MadeRoom.LATER:
                return _WAITS
            if made is MadeRoom.NO:
                return self._without_place(request, capture)
        captured = self._checkpoint(request, capture)
        if isinstance(captured, native.Refusal):
            return _WAITS if passes(captured) else captured.kind
        if capture.evidence is None:
            catalog.adopt_capture(request.claim, captured, capture.kind, was_endpoint=capture.was_endpoint)
        else:
            catalog.adopt_shared_capture(request.claim, captured, capture.evidence)
        self._removals.sweep()
        self._parts.copies.expect()
        self._parts.transition_ended()
        return None

    def _without_place(self, request: Request, capture: CaptureCandidate) -> str | None:
        if capture.otherwise is not None:
            return self._capture(request, CaptureCandidate(capture.frontier, capture.otherwise, own=True))
        self._parts.catalog.note_capture_without_room()
        return "catalog_full"

    def _recycle(self, request: Request, capture: CaptureCandidate) -> MadeRoom:
        """All places for shared prefixes are taken: the oldest goes, if the capture has memory then (C8)."""
        assert request.claim is not None, request.id
        victims = self._parts.catalog.shared_victims(request.claim)
        return self._removals.make_room(_wanted(request, capture), victims, RemovalReason.SHARED_FULL)

    def _checkpoint(self, request: Request, capture: CaptureCandidate) -> int | native.Refusal:
        """A shared one takes free room only (C7), and that of the request's own anchors."""
        captured = self._in_free_room(request, capture)
        if not _lacks_room(captured):
            return captured
        assert request.claim is not None, request.id
        if capture.own and capture.kind in _DISPLACING:
            victims = self._parts.catalog.shared_victims(request.claim)
            if self._removals.make_room(_wanted(request, capture), victims) is MadeRoom.YES:
                return self._in_free_room(request, capture)
        for victim in self._parts.catalog.own_victims(request.claim, capture.kind):
            if self._removals.delete(victim, RemovalReason.PRESSURE) is None:
                captured = self._in_free_room(request, capture)
                if not _lacks_room(captured):
                    break
        return captured

    def _in_free_room(self, request: Request, capture: CaptureCandidate) -> int | native.Refusal:
        captured: int | native.Refusal = 0
        for tier in _TIERS:
            captured = self._parts.program.capture(request.open_sequence, capture.kind, tier, capture.own)
            if not _lacks_room(captured):
                return captured
        return captured


def _wanted(request: Request, capture: CaptureCandidate) -> list[native.Publication]:
    sequence = request.open_sequence
    return [native.Publication.capture(sequence, capture.kind, tier, capture.own) for tier in _TIERS]


def _lacks_room(captured: int | native.Refusal) -> bool:
    return isinstance(captured, native.Refusal) and lacks_room(captured)
