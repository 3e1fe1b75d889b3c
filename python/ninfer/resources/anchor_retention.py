"""Which checkpoints of one continuation stay when newer ones have come. Pure.

A continuation has one endpoint, one turn closure, one response replay, and up to a maximum of long anchors. What loses
its role becomes an anchor if a client may come back to it; anchors over the maximum go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ninfer.resources.catalog_entry import CatalogEntry
from ninfer.resources.checkpoint_kind import CheckpointKind

ENDPOINT_ANCHOR_GAIN = 1024
"""An endpoint stays as an anchor if it is at least so many tokens deeper than the anchors there are (D-24)."""


@dataclass(frozen=True)
class Rearrangement:
    """What to call an anchor from now on, and what to delete. Entries are named by their checkpoints."""

    to_anchors: frozenset[int]
    to_delete: frozenset[int]


def deepest(entries: Sequence[CatalogEntry], kind: CheckpointKind) -> CatalogEntry | None:
    of_kind = [entry for entry in entries if entry.kind is kind]
    return max(of_kind, key=lambda entry: entry.frontier, default=None)


def endpoint_becomes_anchor(entries: Sequence[CatalogEntry], endpoint: CatalogEntry) -> bool:
    anchor = deepest(entries, CheckpointKind.LONG_ANCHOR)
    return endpoint.frontier - (anchor.frontier if anchor else 0) >= ENDPOINT_ANCHOR_GAIN


def rearranged(entries: Sequence[CatalogEntry], max_anchors: int, rewritten_from: int | None = None) -> Rearrangement:
    """entries: those that stand, by ascending frontier. rewritten_from: see Claim."""
    current = {kind: deepest(entries, kind) for kind in CheckpointKind if kind is not CheckpointKind.LONG_ANCHOR}
    closure = current[CheckpointKind.TURN_CLOSURE]
    delete = set(_twins(entries))
    anchors: list[CatalogEntry] = []
    converted = set()
    for entry in entries:
        if entry.checkpoint in delete or any(entry is one for one in current.values()):
            continue
        if entry.kind is not CheckpointKind.LONG_ANCHOR:
            # Within an open turn only the last round matters: nobody comes back to a round before it (C10), except
            # to the one from which on the turn is another when it is closed.
            inside = entry.kind is CheckpointKind.RESPONSE_REPLAY and closure and entry.frontier > closure.frontier
            if inside and entry.frontier != rewritten_from:
                delete.add(entry.checkpoint)
                continue
            converted.add(entry.checkpoint)
        anchors.append(entry)
    bases = [entry.frontier for entry in entries if entry.checkpoint not in delete]
    # The deepest one is what a broken-off prefill left (C11), or where a running one stands.
    droppable = [anchor for anchor in anchors if anchor is not entries[-1]]
    for _ in range(len(anchors) - max_anchors):
        if droppable:
            droppable.remove(dropped := _least_wanted(droppable, bases, by_loss=_was_endpoint(anchors[-1])))
            delete.add(dropped.checkpoint)
    return Rearrangement(frozenset(converted - delete), frozenset(delete))


def _twins(entries: Sequence[CatalogEntry]) -> list[int]:
    """Anchors at the frontier of something else, and all but one of several anchors at one frontier."""
    found, at = [], {entry.frontier for entry in entries if entry.kind is not CheckpointKind.LONG_ANCHOR}
    for entry in entries:
        if entry.kind is CheckpointKind.LONG_ANCHOR:
            if entry.frontier in at:
                found.append(entry.checkpoint)
            at.add(entry.frontier)
    return found


def _least_wanted(anchors: Sequence[CatalogEntry], frontiers: Sequence[int], *, by_loss: bool) -> CatalogEntry:
    """If the newest was an endpoint, the one whose loss costs the fewest tokens; else the shallowest (D-24)."""
    if not by_loss:
        return anchors[0]
    return min(anchors, key=lambda anchor: tokens_lost(anchor, frontiers))


def tokens_lost(anchor: CatalogEntry, frontiers: Sequence[int]) -> int:
    """To be computed again if only the others are there, whose frontiers these are."""
    return anchor.frontier - max((at for at in frontiers if at < anchor.frontier), default=0)


def _was_endpoint(entry: CatalogEntry) -> bool:
    return entry.was_endpoint or entry.kind is CheckpointKind.SESSION_ENDPOINT
