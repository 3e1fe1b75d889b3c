"""What the choice among those who could give way to a request depends on."""

from __future__ import annotations

from collections.abc import Sequence

from ninfer import native
from ninfer.engine.loop_parts import LoopParts
from ninfer.engine.search_session import NativeSearchSession
from ninfer.planner.planning_problem import PlanningOption, PlanningProblem
from ninfer.planner.pressure_search import PressureSearch


class AdmissionPressure:
    """On the session with which admissions are planned."""

    def __init__(self, parts: LoopParts, planning: native.PlanningSession) -> None:
        self._parts = parts
        self._searching = NativeSearchSession(planning)

    def of(
        self,
        publications: Sequence[native.Publication],
        candidates: Sequence[native.AdmissionCandidate],
        protected: Sequence[int],
    ) -> PressureSearch:
        """publications: of these candidates, which the session has opened with these protected owners."""
        parts = self._parts
        options = [
            PlanningOption(publication, candidate.checkpoint)
            for publication, candidate in zip(publications, candidates, strict=True)
        ]
        problem = PlanningProblem(
            options,
            protected,
            parts.catalog.cache_value,
            parts.cost,
            page_bytes=parts.statistics.page_bytes,
            image_bytes=parts.statistics.state_image_bytes,
            clock=parts.clock,
        )
        return PressureSearch(self._searching, problem)
