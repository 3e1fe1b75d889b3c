"""How one request starts: the deepest source that fits without touching anybody, else root with the cache given up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from ninfer.planner.planning_result import PermanentlyInfeasible, Planned, TemporarilyBlocked
from ninfer.planner.planning_session import Candidate, PlanT, PublicationT, Session


def assert_never_built() -> NoReturn:
    raise RuntimeError("this part of the planner is an interface so far")


def plan_materialization(
    session: Session[PublicationT, PlanT],
    candidates: Sequence[Candidate],
    publications: Sequence[PublicationT],
    protected_owners: Sequence[int],
) -> Planned[PlanT] | TemporarilyBlocked | PermanentlyInfeasible:
    """candidates: root first, then as verified; publications: one Publication.admission for each."""
    assert_never_built()
