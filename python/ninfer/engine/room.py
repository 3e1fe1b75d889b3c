"""Who has to go so that something has room: asked of the program before anybody goes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from ninfer import native
from ninfer.engine.loop_parts import LoopParts

# One is enough but for images that are shared, or elsewhere than the room that is wanted.
_MOST_VICTIMS = 16


class Room:
    """Looks at the world without some inactive owners; changes nothing. Without a prompt cache nobody asks."""

    def __init__(self, parts: LoopParts, planning: native.PlanningSession | None) -> None:
        self._parts = parts
        self._planning = planning

    def victims(self, wanted: Sequence[native.Publication], in_order: Iterable[int]) -> list[int] | native.Refusal:
        """The owners without which one of what is wanted has room, in this order and no more than it takes, but at
        least one; none if several together are not enough. Those that may not go now (a copy reads them) stay.
        Refused if none of what is wanted can be made now, whoever goes."""
        assert self._planning is not None, "room without a prompt cache"
        refused = self._planning.open(wanted, self._parts.catalog.protected_owners())
        if refused is not None:
            return refused
        identities = [self._planning.identity(option) for option in range(len(wanted))]
        targets = [target for target in identities if not isinstance(target, native.Refusal)]
        chosen: list[int] = []
        for owner in islice(in_order, _MOST_VICTIMS):
            enough = self._is_enough(targets, [*chosen, owner])
            if enough is None:
                continue
            chosen.append(owner)
            if enough:
                return self._fewest(targets, chosen)
        return []

    def _fewest(self, targets: Sequence[int], chosen: list[int]) -> list[int]:
        """Without those whose going did not help."""
        for owner in chosen[:-1]:
            others = [one for one in chosen if one != owner]
            if self._is_enough(targets, others):
                chosen = others
        return chosen

    def _is_enough(self, targets: Sequence[int], owners: Sequence[int]) -> bool | None:
        """None if one of them may not go."""
        assert self._planning is not None
        steps = [native.Degradation("evict", owner=owner) for owner in owners]
        for identity in targets:
            without = self._planning.degrade(identity, steps)
            if isinstance(without, native.Refusal):
                return None
            found = native.must(self._planning.assess(without))
            if not found.is_short_of_cache and (found.refusal is None or found.refusal.kind != "pinned"):
                return True
        return False
