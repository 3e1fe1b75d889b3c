"""The choice among targets that cost somebody something: the search, as the planner of admissions asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ninfer.planner.option_search import SearchSession
from ninfer.planner.planning_problem import PlanningProblem
from ninfer.planner.planning_result import Explanation, StopReason
from ninfer.planner.session_columns import DEGRADATION, KINDS, STATUSES
from ninfer.planner.target_search import TargetSearch


@dataclass(frozen=True)
class Choice:
    """target: of this option, feasible."""

    option: int
    target: int
    needs_transfer: bool
    stop_reason: StopReason
    explanation: Explanation


@dataclass(frozen=True)
class PressureSearch:
    session: SearchSession
    problem: PlanningProblem

    def choose(self, identities: Mapping[int, int]) -> Choice | None:
        """Among the targets behind these identities, by option. None: the search has met none that is feasible."""
        search = TargetSearch(self.session, self.problem)
        reason = search.run(identities)
        best = search.best
        if best is None:
            return None
        kinds = [KINDS[kind] for kind in best.steps[:, DEGRADATION["kind"]]]
        return Choice(
            option=best.option,
            target=best.target,
            needs_transfer=STATUSES[best.fact("status")] == "needs_transfer",
            stop_reason=reason,
            explanation=Explanation(
                targets=search.assessed,
                now_ns=best.now_ns,
                loss_ns=best.loss_ns,
                steps={kind: kinds.count(kind) for kind in KINDS if kind in kinds},
                affected=len(best.affected),
                cost_source=self.problem.cost.source,
            ),
        )
