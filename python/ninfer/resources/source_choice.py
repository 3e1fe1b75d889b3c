"""Whether a request takes a source's continuation over or leaves it alone (D-24). Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ninfer.resources.checkpoint_kind import CheckpointKind

RETAIN, CONSUME, CONTINUE = "retain", "consume", "continue"


@dataclass(frozen=True)
class SourceSituation:
    """One checkpoint, its owner and the request.

    foreign: the owner is the latest of another session. idle: its owner is inactive and nobody reads it. publishes: of
    the request. marked: the request declares a boundary there. cell_free: a branch would have a place beside it.
    whole: the prompt begins with all tokens of the checkpoint. last: nothing of its continuation is deeper.
    keeps_endpoint: an endpoint is worth an anchor. only_place: it is left alone only if the request does not start.
    """

    kind: CheckpointKind
    idle: bool
    publishes: bool
    foreign: bool = False
    marked: bool = False
    cell_free: bool = True
    whole: bool = True
    last: bool = False
    keeps_endpoint: bool = False
    only_place: bool = False


def wanted_uses(situation: SourceSituation) -> tuple[str, ...]:
    """The wanted use first, then what serves if the program has no room for it."""
    if situation.only_place and situation.idle and situation.publishes:
        # Its owner comes back to it, or to what is before it, in the cell of who takes it over.
        return (CONTINUE if situation.whole else CONSUME,)
    must_stay = not situation.publishes or situation.foreign or situation.marked
    if situation.kind is CheckpointKind.SHARED_STABLE_PREFIX or not situation.idle or must_stay:
        return (RETAIN,)
    if situation.kind is CheckpointKind.SESSION_ENDPOINT and situation.whole:
        return (CONTINUE, CONSUME) if situation.keeps_endpoint else (CONSUME,)
    if situation.whole and situation.last:
        return (CONTINUE,)  # a broken-off prefill goes on, and nobody loses anything
    taken_over = CONTINUE if situation.whole else CONSUME
    return (RETAIN, taken_over) if situation.cell_free else (taken_over,)
