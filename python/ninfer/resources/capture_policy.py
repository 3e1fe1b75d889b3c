"""At which frontiers a prefill stops to keep a checkpoint. Pure.

Shared: the client's markers, the end of the tools, the end of the leading instructions, and points of a grid that two
independent requests have named. Own: before what a client may rewrite, before the answer, at the last message
boundaries; of a raw prompt, before its last token.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

from ninfer.resources.capture_value import value_of
from ninfer.resources.catalog_entry import Digest
from ninfer.resources.checkpoint_kind import CheckpointKind
from ninfer.resources.context_cache_options import ContextCacheOptions
from ninfer.resources.evidence import Evidence

CLOSE_TOKENS = 16
"""A capture that saves at most so many tokens over an earlier one is not worth the stop (D-33 tolerates them)."""
GRID_FIRST_STEP = 256
GRID_POINTS = 8


class MessageStart(Protocol):
    @property
    def frontier(self) -> int: ...
    @property
    def message(self) -> int: ...


class Boundaries(Protocol):
    """frontend.PromptBoundaries, as far as the policy reads it."""

    @property
    def messages(self) -> Sequence[MessageStart]: ...
    @property
    def tools_end(self) -> int | None: ...
    @property
    def leading_end(self) -> int | None: ...
    @property
    def turn_closure(self) -> int | None: ...
    @property
    def response_replay(self) -> int | None: ...
    @property
    def markers(self) -> Sequence[int]: ...
    @property
    def raw(self) -> bool: ...
    def message_at(self, token: int) -> int | None: ...


@dataclass(frozen=True)
class CaptureCandidate:
    """own: joins the request's continuation; else it gets a shared owner, and evidence says why.

    otherwise: of a shared one, what to keep in the continuation if there is no place among the shared prefixes.
    was_endpoint: of an anchor, where a conversation ended that could not be gone on from.
    """

    frontier: int
    kind: CheckpointKind
    own: bool
    evidence: Evidence | None = None
    otherwise: CheckpointKind | None = None
    was_endpoint: bool = False

    @property
    def value(self) -> int:
        """Where not all of a prompt's captures have room."""
        return max(value_of(self.kind), -1 if self.otherwise is None else value_of(self.otherwise))


@dataclass(frozen=True)
class CaptureFacts:
    """Frontiers of a prompt that have a shared entry already, and those that two independent domains have named.

    named: frontier and digest of all points where one could be made; ResourceManager.adopt_admission remembers them.
    endpoint: where the
    longest conversation ends that the prompt goes on from, if that is worth an anchor.
    """

    already_shared: frozenset[int] = frozenset()
    repeated: frozenset[int] = frozenset()
    named: tuple[tuple[int, Digest], ...] = ()
    endpoint: int | None = None


@dataclass(frozen=True)
class CaptureSituation:
    """base: where the prefill begins. surviving: frontiers of the checkpoints that remain at or below it.

    has_state: of the model. Without recurrent layers any checkpoint serves all its prefixes, so none is kept for one.
    structural: whether the ends of the tools and of the instructions are shared unasked.
    """

    prompt_tokens: int
    base: int
    surviving: frozenset[int] = frozenset()
    publishes: bool = True
    has_state: bool = True
    structural: bool = True


def capture_candidates(
    boundaries: Boundaries, situation: CaptureSituation, facts: CaptureFacts, options: ContextCacheOptions
) -> tuple[CaptureCandidate, ...]:
    """One per frontier, ascending, at most prompt_tokens - 1; own ones above the base, shared ones from the base on:
    what is kept there privately is shared before the first unit, which costs no prefill (D-23)."""
    if not options.enabled or not situation.publishes:
        return ()
    merged: dict[int, CaptureCandidate] = {}
    for candidate in (*_shared(boundaries, situation, facts, options), *_own(boundaries, situation, facts, options)):
        known = merged.get(candidate.frontier)
        if candidate.own and candidate.frontier in facts.already_shared and candidate.kind is _ANCHOR:
            continue
        if known is None:
            merged[candidate.frontier] = candidate
        elif candidate.own and not known.own and known.otherwise in (None, _ANCHOR):
            merged[candidate.frontier] = _with_otherwise(known, candidate.kind)
    above = [merged[at] for at in sorted(merged) if situation.base < at < situation.prompt_tokens]
    shared = merged.get(situation.base)
    if shared is None or shared.own:
        return tuple(_without_close(above, situation, boundaries))
    at_base = replace(shared, otherwise=None)
    return (at_base, *_without_close(above, replace(situation, surviving=frozenset({situation.base})), boundaries))


_ANCHOR = CheckpointKind.LONG_ANCHOR


def grid_points(prompt_tokens: int) -> tuple[int, ...]:
    """Absolute multiples of a step of 256 tokens, doubled until at most 8 lie inside the prompt (C6)."""
    step = GRID_FIRST_STEP
    while (prompt_tokens - 1) // step > GRID_POINTS:
        step *= 2
    return tuple(range(step, prompt_tokens, step))


def shared_frontiers(boundaries: Boundaries, *, structural: bool = True) -> tuple[int, ...]:
    """Where a shared prefix may be made whatever others did."""
    ends = (boundaries.tools_end, boundaries.leading_end) if structural else ()
    return (*boundaries.markers, *(at for at in ends if at is not None))


def _shared(
    boundaries: Boundaries, situation: CaptureSituation, facts: CaptureFacts, options: ContextCacheOptions
) -> Iterator[CaptureCandidate]:
    frontiers = shared_frontiers(boundaries, structural=situation.structural)
    if options.max_shared_prefixes == 0:
        yield from (CaptureCandidate(at, _ANCHOR, own=True) for at in set(frontiers))
        return
    evidences = dict.fromkeys(boundaries.markers, Evidence.EXPLICIT_BOUNDARY)
    for at in frontiers:
        evidences.setdefault(at, Evidence.ENGINE_STRUCTURAL)
    for at in facts.repeated:
        evidences.setdefault(at, Evidence.ENGINE_OBSERVED)
    for at, evidence in evidences.items():
        if at not in facts.already_shared:
            otherwise = None if evidence is Evidence.ENGINE_OBSERVED else _ANCHOR
            yield CaptureCandidate(at, CheckpointKind.SHARED_STABLE_PREFIX, False, evidence, otherwise)


def _own(
    boundaries: Boundaries, situation: CaptureSituation, facts: CaptureFacts, options: ContextCacheOptions
) -> Iterator[CaptureCandidate]:
    if not situation.has_state:
        return
    if facts.endpoint is not None:
        yield CaptureCandidate(facts.endpoint, _ANCHOR, own=True, was_endpoint=True)
    if boundaries.raw:
        if situation.prompt_tokens > CLOSE_TOKENS and options.max_long_anchors_per_continuation > 0:
            yield CaptureCandidate(situation.prompt_tokens - 1, _ANCHOR, own=True)
        return
    if boundaries.turn_closure is not None:
        yield CaptureCandidate(boundaries.turn_closure, CheckpointKind.TURN_CLOSURE, own=True)
    if boundaries.response_replay is not None:
        yield CaptureCandidate(boundaries.response_replay, CheckpointKind.RESPONSE_REPLAY, own=True)
    wanted = min(options.auto_long_anchors, options.max_long_anchors_per_continuation)
    for at in islice(_message_anchors(boundaries, situation), wanted):
        yield CaptureCandidate(at, _ANCHOR, own=True)


def _message_anchors(boundaries: Boundaries, situation: CaptureSituation) -> Iterator[int]:
    """Starts of messages in the closed part of the conversation, the last one first.

    Inside the open turn only its last round matters, and the replay point keeps that (C10); anchors at its rounds would
    push out those before it.
    """
    end = situation.prompt_tokens if boundaries.turn_closure is None else boundaries.turn_closure
    return (start.frontier for start in reversed(boundaries.messages) if start.frontier < end)


def _with_otherwise(candidate: CaptureCandidate, kind: CheckpointKind) -> CaptureCandidate:
    return replace(candidate, otherwise=kind)


def _without_close(
    candidates: Sequence[CaptureCandidate], situation: CaptureSituation, boundaries: Boundaries
) -> Iterator[CaptureCandidate]:
    """Leaves out what would save little over an earlier checkpoint; never a marker, nor the end of a raw prompt."""
    last = max((at for at in situation.surviving if at <= situation.base), default=0)
    for candidate in candidates:
        wanted = candidate.frontier in boundaries.markers or (boundaries.raw and candidate.own)
        if wanted or _reach(candidate, boundaries, situation) - last > CLOSE_TOKENS:
            last = candidate.frontier
            yield candidate


def _reach(candidate: CaptureCandidate, boundaries: Boundaries, situation: CaptureSituation) -> int:
    """How many tokens a later prompt that starts from there may share with this one.

    Whoever goes on after the answer shares the opener of the answer too; all others part at a boundary.
    """
    return situation.prompt_tokens if candidate.frontier == boundaries.response_replay else candidate.frontier
