"""How one request starts: the deepest source that fits as things are, else what fits if the cache is given up.

First every candidate's identity target is assessed, which costs microseconds; if the deepest fits, planning is over.
Else what fits is compared with what deeper ones would cost the others (pressure_search.py). What a search finds nothing
for has the maximal targets, in which everything goes that nobody protects, from the deepest candidate to root: a source
stays as long as it fits beside its request, and root is what always answers whether the request can run now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from ninfer.planner.planning_result import PermanentlyInfeasible, Planned, StopReason, TemporarilyBlocked
from ninfer.planner.planning_session import Assessment, Candidate, PlanT, PublicationT, RefusalFacts, Session, StepT
from ninfer.planner.pressure_search import Choice, PressureSearch

T = TypeVar("T")


def plan_materialization(
    session: Session[PublicationT, PlanT, StepT],
    candidates: Sequence[Candidate],
    publications: Sequence[PublicationT],
    protected_owners: Sequence[int],
    always: Sequence[StepT] = (),
    pressure: PressureSearch | None = None,
) -> Planned[PlanT] | TemporarilyBlocked | PermanentlyInfeasible:
    """candidates: root first, then in the order in which they are wanted; publications: one admission for each. always:
    steps down that every target takes; what cannot be made with them is not made. pressure: on the same session; None:
    nobody gives anything up for a deeper start than fits."""
    assert candidates and candidates[0].is_root and len(candidates) == len(publications), len(publications)
    refusal = session.open(publications, protected_owners)
    if refusal is not None:
        return TemporarilyBlocked(refusal)
    # An option that cannot be made now, since a copy of its source is on its way, leaves the others as they are.
    there = [option for option in range(len(candidates)) if session.why_left_out(option) is None]
    identities = {option: _answered(session.identity(option)) for option in there}
    if always:
        degraded = {option: session.degrade(target, always) for option, target in identities.items()}
        if (refusal := _refusal(degraded[0])) is not None:
            return TemporarilyBlocked(refusal)
        identities = {option: target for option, target in degraded.items() if isinstance(target, int)}
        there = list(identities)
    found = {option: _answered(session.assess(identities[option])) for option in there}
    chosen = _deepest_feasible(candidates, found)
    searched = None if pressure is None else _searched(pressure, candidates, identities, found, chosen)
    if searched is not None:
        target = searched.target, searched.needs_transfer
        planned = _planned(session, candidates, there, searched.option, target, searched.stop_reason)
        return replace(planned, explanation=searched.explanation)
    if chosen is not None:
        target = identities[chosen], found[chosen].status == "needs_transfer"
        return _planned(session, candidates, there, chosen, target, StopReason.NO_PRESSURE)
    root = found[0]
    if root.status == "permanently_infeasible":
        return PermanentlyInfeasible(_why(root))
    if not root.is_short_of_cache:
        return TemporarilyBlocked(_why(root))
    return _maximal(session, candidates, there)


def _searched(
    pressure: PressureSearch,
    candidates: Sequence[Candidate],
    identities: Mapping[int, int],
    found: Mapping[int, Assessment],
    chosen: int | None,
) -> Choice | None:
    """Asked only if somebody's giving way can make a deeper start possible than fits, or any start at all. Of one
    source the last use alone is worth that: the others are wanted only where they cost nothing."""
    depth = -1 if chosen is None else candidates[chosen].frontier
    last_use = {candidates[option].checkpoint: option for option in identities}
    expandable = [
        option
        for option in last_use.values()
        if not found[option].feasible and found[option].is_short_of_cache and candidates[option].frontier > depth
    ]
    if not expandable:
        return None
    asked = sorted({*expandable, *([] if chosen is None else [chosen])})
    return pressure.choose({option: identities[option] for option in asked})


def _maximal(
    session: Session[PublicationT, PlanT, StepT], candidates: Sequence[Candidate], options: Sequence[int]
) -> Planned[PlanT] | TemporarilyBlocked:
    for option in sorted(options, key=lambda option: (-candidates[option].frontier, option)):
        target = _answered(session.maximal(option))
        found = _answered(session.assess(target))
        if found.feasible:
            return _planned(
                session, candidates, options, option, (target, found.status == "needs_transfer"), StopReason.MAXIMAL
            )
    return TemporarilyBlocked(_why(found))


def _deepest_feasible(candidates: Sequence[Candidate], found: Mapping[int, Assessment]) -> int | None:
    """Of one depth what needs no copies, except that one source's uses stay in the order in which they are wanted."""
    best: dict[int, int] = {}
    for option, assessment in found.items():
        if assessment.feasible:
            best.setdefault(candidates[option].checkpoint, option)

    def rank(option: int) -> tuple[int, bool, int]:
        return (-candidates[option].frontier, found[option].status != "ready", option)

    return min(best.values(), key=rank, default=None)


def _planned(
    session: Session[PublicationT, PlanT, StepT],
    candidates: Sequence[Candidate],
    there: Sequence[int],
    option: int,
    target: tuple[int, bool],
    stop_reason: StopReason,
) -> Planned[PlanT]:
    """there: the options that were assessed. target: and whether it needs transfers."""
    frontier = candidates[option].frontier
    refused = coming = 0
    for other, candidate in enumerate(candidates):
        left_out = session.why_left_out(other)
        if other in there:
            refused = max(refused, candidate.frontier)
        elif left_out is not None and left_out.kind == "copy_in_flight":
            coming = max(coming, candidate.frontier)
    return Planned(
        plan=_answered(session.seal(target[0])),
        candidate=option,
        frontier=frontier,
        needs_transfer=target[1],
        stop_reason=stop_reason,
        refused=refused if refused > frontier else 0,
        coming=coming if coming > frontier else 0,
    )


def _answered(result: T | RefusalFacts) -> T:
    """Of the session's own targets at its own revision: a refusal here would be a bug."""
    assert not hasattr(result, "wanted"), str(result)
    return result


def _refusal(target: int | RefusalFacts) -> RefusalFacts | None:
    return None if isinstance(target, int) else target


def _why(assessment: Assessment) -> RefusalFacts:
    assert assessment.refusal is not None, assessment.status
    return assessment.refusal
