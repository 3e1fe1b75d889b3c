"""Takes out of the program what the catalog gives up."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from ninfer import native
from ninfer.engine.loop_parts import LoopParts
from ninfer.engine.refusals import passes
from ninfer.engine.room import Room
from ninfer.resources.removal_reason import RemovalReason


class MadeRoom(enum.Enum):
    """LATER: what is wanted waits for a copy or a unit, and nobody has gone."""

    YES = enum.auto()
    NO = enum.auto()
    LATER = enum.auto()


class Removals:
    """Every removal is reported to the catalog with its reason, after it has happened."""

    def __init__(self, parts: LoopParts, room: Room) -> None:
        self._parts = parts
        self._room = room

    def release(self, owner: int, reason: RemovalReason) -> native.Refusal | None:
        """Gives an inactive owner up, with all its checkpoints."""
        refused = self._parts.program.release_owner(owner)
        if isinstance(refused, native.Refusal):
            return refused
        self._parts.catalog.note_released(owner, reason)
        self._parts.copies.expect()
        return None

    def delete(self, checkpoint: int, reason: RemovalReason) -> native.Refusal | None:
        """One checkpoint of an owner that stays."""
        refused = self._parts.program.delete_checkpoint(checkpoint)
        if isinstance(refused, native.Refusal):
            return refused
        self._parts.catalog.note_removed([checkpoint], reason)
        self._parts.copies.expect()
        return None

    def make_room(
        self,
        wanted: Sequence[native.Publication],
        in_order: Sequence[int],
        reason: RemovalReason = RemovalReason.PRESSURE,
    ) -> MadeRoom:
        """Gives up as few of the owners as it takes, but at least one; then one of what is wanted has room. If that
        cannot be, nobody goes. Those that the program does not let go now (somebody has them pinned) stay."""
        left = list(in_order)
        while left:
            victims = self._room.victims(wanted, left)
            if isinstance(victims, native.Refusal):
                return MadeRoom.LATER if passes(victims) else MadeRoom.NO
            if not victims:
                return MadeRoom.NO
            refusing = next((one for one in victims if self.release(one, reason) is not None), None)
            if refusing is None:
                return MadeRoom.YES
            left.remove(refusing)
        return MadeRoom.NO

    def sweep(self) -> None:
        """Deletes the checkpoints that later ones have replaced, as far as the program lets them go now."""
        for checkpoint in self._parts.catalog.doomed():
            self.delete(checkpoint, RemovalReason.SUPERSEDED)
