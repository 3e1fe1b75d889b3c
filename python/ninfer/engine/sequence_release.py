"""How a sequence ends: as a checkpoint that later requests can go on from, or not at all."""

from __future__ import annotations

import enum

from ninfer import native
from ninfer.engine.loop_parts import LoopParts
from ninfer.engine.refusals import lacks_room, passes
from ninfer.engine.removals import Removals
from ninfer.engine.request import Request
from ninfer.resources.checkpoint_kind import CheckpointKind
from ninfer.resources.claim import Claim
from ninfer.resources.removal_reason import RemovalReason

# Where the image of an endpoint goes, in this order.
_TIERS = ("device", "host")
# Owners that one finish may displace: an endpoint has one image, so one is enough but for pins and shared images.
_MOST_VICTIMS = 4


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
            self.without_room += 1
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
        for _ in range(_MOST_VICTIMS):
            tried = self._finish_in_free_room(request, keep)
            if tried is not _Try.NO_ROOM or not self._displaced(request, keep):
                return tried
        return self._finish_in_free_room(request, keep)

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
        self._parts.catalog.adopt_finish(request.claim, owner, keep, canonical=request.output.is_canonical)
        self._removals.sweep()
        self._parts.copies.expect()
        self.kept += 1

    def _displaced(self, request: Request, keep: CheckpointKind) -> bool:
        """The least recently used conversation makes room for the newest one, but not for the remains of a broken-off
        prefill, which nobody may ask for again."""
        if keep is not CheckpointKind.SESSION_ENDPOINT and not (request.claim and request.claim.takes_owner):
            return False
        victim = self._parts.catalog.cell_victim()
        return victim is not None and self._removals.release(victim, RemovalReason.PRESSURE) is None

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
