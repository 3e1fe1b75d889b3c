"""Which of the program's refusals pass by themselves."""

from __future__ import annotations

from ninfer.planner.planning_session import RefusalFacts

# Kinds that end with a copy, a unit or a transaction that is under way: the same call is tried at the next boundary.
_PASSING = frozenset({"transaction_open", "unsettled", "copy_in_flight", "pending_batch", "pinned"})
_NO_ROOM = frozenset({"no_image_slots", "no_host_blocks"})


def passes(refusal: RefusalFacts) -> bool:
    """Whether waiting for what is under way is enough."""
    return refusal.kind in _PASSING


def lacks_room(refusal: RefusalFacts) -> bool:
    """Whether a checkpoint's image has no place on the tier that was asked for."""
    return refusal.kind in _NO_ROOM
