"""Whether a frontier that a prefill has just reached is kept for everybody, and who gives way for that (L4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ninfer.planner.option_search import SearchSession
from ninfer.planner.planning_problem import PlanningProblem
from ninfer.planner.pressure_search import Choice, PressureSearch
from ninfer.planner.session_columns import ASSESSMENT, FEASIBLE
from ninfer.resources.evidence import Evidence


class CaptureSession(SearchSession, Protocol):
    """Also opens the problem. open: why nothing can be made now, if so; identity: None for an option that cannot."""

    def open(self, options: Sequence[Any], protected_owners: Sequence[int], /) -> str | None: ...
    def identity(self, option: int, /) -> int | None: ...


@dataclass(frozen=True)
class SharedCapture:
    """target: of this option, feasible; to be sealed. choice: of a search; None: it costs nobody anything."""

    option: int
    target: int
    choice: Choice | None = None


@dataclass(frozen=True)
class Skip:
    """Nothing is published, and nobody gives anything up."""

    reason: str


def plan_shared_capture(
    session: CaptureSession, problem: PlanningProblem, evidence: Evidence, *, repeated: bool
) -> SharedCapture | Skip:
    """problem.options: places for the state image in the order in which they are wanted, each with its NewCheckpoint.

    Declared evidence may displace others if that is strictly worth it, so may what two independent requests have named
    (repeated). What the prompt's structure alone suggests takes spare room, on speculation; anything else needs
    repetition (C7).
    """
    if evidence.needs_repetition and not repeated:
        return Skip("not_repeated")
    refused = session.open([one.publication for one in problem.options], problem.protected_owners)
    if refused is not None:
        return Skip(refused)
    found = {option: session.identity(option) for option in range(len(problem.options))}
    identities = {option: target for option, target in found.items() if target is not None}
    facts, _ = session.assess_many(list(identities.values()))
    fits = [option for option, row in zip(identities, facts, strict=True) if row[ASSESSMENT["status"]] in FEASIBLE]
    spare = next(iter(fits), None)
    may_displace = evidence.is_declared or repeated
    if may_displace:
        choice = PressureSearch(session, problem).choose(identities)
        if choice is not None and choice.explanation.price_ns < 0:
            return SharedCapture(choice.option, choice.target, choice)
    has_place = problem.value().free_places > 0
    if evidence is Evidence.ENGINE_STRUCTURAL and spare is not None and has_place:
        return SharedCapture(spare, identities[spare])
    return Skip("no_gain" if may_displace else "no_spare_room")
