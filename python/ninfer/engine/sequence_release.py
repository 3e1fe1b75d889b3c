"""How a sequence ends: as a checkpoint that later requests can go on from, or not at all."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from ninfer import native
from ninfer.engine.loop_parts import LoopParts
from ninfer.engine.refusals import lacks_room, passes
from ninfer.engine.removals import MadeRoom, Removals
from ninfer.engine.request import Request
from ninfer.resources.checkpoint_kind import CheckpointKind
from ninfer.resources.claim import Claim
from ninfer.resources.removal_reason import RemovalReason

# Where the image of an endpoint goes, in this order.
_TIERS = ("device", "host")


class _Try(enum.Enum):
    DONE = enum.auto()
    LATER = enum.auto()
    NO_ROOM = enum.auto()


class SequenceRelease:
    """Gives back everything that a sequence holds. `release` is repeated until it says that the sequence is gone."""

    def __init__(self, parts: LoopParts, removals: Removals) -> None:
        self._parts = parts
        self._removals = removals
        self.kept = 0
        self.without_room = 0

    def release(self, request: Request, keep: CheckpointKind | None) -> bool:
        """Whether the sequence is gone; else the program cannot end it yet, and it is as it was."""
        if keep is not None and self._is_worth_keeping(request):
            tried = self._finish(request, keep)
            if tried is not _Try.NO_ROOM:
                return tried is _Try.DONE
            self._note_unkept(request)
        return self._discard(request)

    def _is_worth_keeping(self, request: Request) -> bool:
        """If it has computed nothing, closing it leaves everything as it was before it began, where that is possible;
        else it would take the owner with it that it has taken over."""
        claim = request.claim
        if claim is None or not claim.key.publishes:
            return False
        computed = native.must(self._parts.program.sequence(request.open_sequence)).computed
        return computed > request.base or (claim.takes_owner and not self._comes_back(claim))

    def _comes_back(self, claim: Claim) -> bool:
        """Whether closing gives owner and source back: the state of a consumed source needs a slot again."""
        if not claim.source_goes:
            return True
        statistics = self._parts.program.statistics()
        used, slots = statistics.used.image_slots_checkpoint, statistics.capacity.image_slots_checkpoint
        return statistics.state_image_bytes == 0 or used < slots

    def _finish(self, request: Request, keep: CheckpointKind) -> _Try:
        """Others go first that are worth less than the request's own anchors, then these, then others; what the request
        has kept of its last turn at the very last."""
        tried = self._finish_in_free_room(request, keep)
        if tried is not _Try.NO_ROOM:
            return tried
        claim, catalog = request.claim, self._parts.catalog
        assert claim is not None, request.id
        if self._may_displace(request, keep):
            wanted = [native.Publication.finish(request.open_sequence, keep, tier) for tier in _TIERS]
            if self._removals.make_room(wanted, catalog.cheap_victims(claim)) is MadeRoom.YES:
                return self._finish_in_free_room(request, keep)
            tried = self._finish_in_own_room(request, keep, catalog.own_victims(claim, CheckpointKind.TURN_CLOSURE))
            if tried is not _Try.NO_ROOM:
                return tried
            if self._removals.make_room(wanted, catalog.memory_victims(claim)) is MadeRoom.YES:
                return self._finish_in_free_room(request, keep)
        return self._finish_in_own_room(request, keep, catalog.own_victims(claim, CheckpointKind.SESSION_ENDPOINT))

    def _finish_in_own_room(self, request: Request, keep: CheckpointKind, own: Sequence[int]) -> _Try:
        for victim in own:
            if self._removals.delete(victim, RemovalReason.PRESSURE) is None:
                tried = self._finish_in_free_room(request, keep)
                if tried is not _Try.NO_ROOM:
                    return tried
        return _Try.NO_ROOM

    def _finish_in_free_room(self, request: Request, keep: CheckpointKind) -> _Try:
        for tier in _TIERS:
            finished = self._parts.program.finish(request.open_sequence, keep, tier)
            if not isinstance(finished, native.Refusal):
                self._adopt(request, finished, keep)
                return _Try.DONE
            if passes(finished):
                return _Try.LATER
            if not lacks_room(finished):
                return _Try.NO_ROOM
        return _Try.NO_ROOM

    def _adopt(self, request: Request, owner: int, keep: CheckpointKind) -> None:
        assert request.claim is not None, request.id
        canonical = request.prompt.size + request.output.canonical_tokens
        self._parts.catalog.adopt_finish(request.claim, owner, keep, canonical=canonical)
        self._removals.sweep()
        self._parts.copies.expect()
        self.kept += 1

    def _may_displace(self, request: Request, keep: CheckpointKind) -> bool:
        """What was used long ago makes room for the newest conversation, but not for the remains of a broken-off
        prefill, which nobody may ask for again."""
        return keep is CheckpointKind.SESSION_ENDPOINT or (request.claim is not None and request.claim.takes_owner)

    def _note_unkept(self, request: Request) -> None:
        self.without_room += 1
        computed = native.must(self._parts.program.sequence(request.open_sequence)).computed
        self._parts.catalog.note_unkept(request.prompt, min(computed, request.prompt.size - 1))

    def _discard(self, request: Request) -> bool:
        closed = self._parts.program.close_sequence(request.open_sequence)
        if isinstance(closed, native.Refusal):
            assert passes(closed), str(closed)
            return False
        if request.claim is not None:
            self._parts.catalog.discard(request.claim)
            self._removals.sweep()
            self._parts.copies.expect()
        return True
