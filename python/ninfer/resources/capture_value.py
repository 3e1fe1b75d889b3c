"""What is worth more where not everything has room: the end of a request, then what the next turn comes back to."""

from __future__ import annotations

from collections.abc import Sequence

from ninfer.resources.anchor_retention import tokens_lost
from ninfer.resources.catalog_entry import CatalogEntry
from ninfer.resources.checkpoint_kind import CheckpointKind

_VALUE = {
    CheckpointKind.LONG_ANCHOR: 0,
    CheckpointKind.SHARED_STABLE_PREFIX: 1,
    CheckpointKind.TURN_CLOSURE: 2,
    CheckpointKind.RESPONSE_REPLAY: 3,
    CheckpointKind.SESSION_ENDPOINT: 4,
}


def value_of(kind: CheckpointKind) -> int:
    """A response replay serves whoever asks again or goes on in the same turn, a turn closure every next message, a
    shared prefix new conversations, an anchor only who edits."""
    return _VALUE[kind]


def gives_way(entries: Sequence[CatalogEntry], kind: CheckpointKind) -> list[CatalogEntry]:
    """Which of a continuation's own checkpoints go, in this order, for another one of this kind: only what is worth
    less; of the anchors the one first whose loss costs the fewest tokens."""
    left = [entry for entry in entries if not entry.doomed]
    order: list[CatalogEntry] = []
    while cheaper := [entry for entry in left if value_of(entry.kind) < value_of(kind)]:
        frontiers = [entry.frontier for entry in left]
        first = min(cheaper, key=lambda entry: (value_of(entry.kind), tokens_lost(entry, frontiers)))
        left.remove(first)
        order.append(first)
    return order
