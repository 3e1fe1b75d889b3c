"""Takes out of the program what the catalog gives up."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ninfer import native
from ninfer.engine.loop_parts import LoopParts
from ninfer.resources.removal_reason import RemovalReason

# For one image: one owner is enough but for images that are shared, or elsewhere than the room that is wanted.
_MOST_VICTIMS = 4


class Removals:
    """Every removal is reported to the catalog with its reason, after it has happened."""

    def __init__(self, parts: LoopParts) -> None:
        self._parts = parts

    def release(self, owner: int, reason: RemovalReason) -> native.Refusal | None:
        """Gives an inactive owner up, with all its checkpoints."""
        refused = self._parts.program.release_owner(owner)
        if isinstance(refused, native.Refusal):
            return refused
        self._parts.catalog.note_released(owner, reason)
        self._parts.copies.expect()
        return None

    def make_room(self, victims: Iterable[int], has_room: Callable[[], bool]) -> None:
        """Gives up one after the other until there is room, or several were not enough. Those that the program does
        not let go now (a copy reads them, somebody has them pinned) are passed over."""
        given_up = 0
        for victim in victims:
            if self.release(victim, RemovalReason.PRESSURE) is not None:
                continue
            given_up += 1
            if has_room() or given_up == _MOST_VICTIMS:
                return

    def sweep(self) -> None:
        """Deletes the checkpoints that later ones have replaced, as far as the program lets them go now."""
        for checkpoint in self._parts.catalog.doomed():
            if not isinstance(self._parts.program.delete_checkpoint(checkpoint), native.Refusal):
                self._parts.catalog.note_removed([checkpoint], RemovalReason.SUPERSEDED)
                self._parts.copies.expect()
