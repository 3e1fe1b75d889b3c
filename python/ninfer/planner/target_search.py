"""A bounded best-first search for the cheapest complete target (L2).

A node is a target with exact facts. First the single steps of every option are assessed, so that what each costs and
saves is known; then sets of steps that should be enough, and step after step. The queue is ordered by the price paid
plus an estimate of what is still to be paid. Estimates order only: a target counts if the program says that it can be
carried out, and the catalog has a place for what it leaves.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np

from ninfer.economics.machine_cost import Rows
from ninfer.planner.option_search import NO_STEPS, OptionSearch, SearchSession
from ninfer.planner.planning_problem import PlanningProblem
from ninfer.planner.planning_result import StopReason
from ninfer.planner.priced_target import PricedTarget
from ninfer.planner.recency_ladder import RecencyLadder
from ninfer.planner.step_cover import Steps, cover, least

_BATCH = 8
# Of the budget, for each option: one part of so many goes into single steps.
_PROBED_SHARE = 5


@dataclass(order=True)
class _Prospect:
    """A target that is not assessed yet: the parent's steps, and those chosen."""

    estimate: float
    ordinal: int
    parent: PricedTarget = field(compare=False)
    steps: Steps = field(compare=False)
    chosen: list[int] = field(compare=False)

    def all_steps(self) -> Rows:
        return np.concatenate([self.parent.steps, self.steps.rows[self.chosen]])


class TargetSearch:
    """One search, over the options that were added. best: what it has found."""

    def __init__(self, session: SearchSession, problem: PlanningProblem) -> None:
        self._session = session
        self._problem = problem
        self._cache = problem.value()
        self._options: dict[int, OptionSearch] = {}
        self._queue: list[_Prospect] = []
        self._seen: set[int] = set()
        self._ordinal = 0
        self._started = problem.clock()
        self.best: PricedTarget | None = None
        self.assessed = 0

    def add(self, option: int, identity: int) -> None:
        search = OptionSearch.of(self._session, self._problem, self._cache, option, identity)
        self._options[option] = search
        [found] = search.priced([(identity, NO_STEPS)])
        if not found.feasible:
            if self._problem.by_recency:
                self._climb(search)
            self._probe(search, found)
        self._meet([found])

    def run(self) -> StopReason:
        reason = self._follow()
        self._lighten()
        return reason

    def _climb(self, search: OptionSearch) -> None:
        ladder = RecencyLadder(search)
        lowest = ladder.lowest()
        if lowest is not None:
            rung, target = lowest
            search.losable = set(ladder.oldest[:rung])
            self._seen.add(target.target)
            self._meet([target])

    def _probe(self, search: OptionSearch, identity: PricedTarget) -> None:
        """A set that should be enough, so that there is something, and the single steps that promise most."""
        steps = search.steps(identity)
        chosen = cover(steps, identity.lacking)
        if chosen is not None:
            self._measure(search.option, [steps.rows[chosen]])
        numbers = np.argsort(steps.prices, kind="stable")[: self._problem.budget.targets // _PROBED_SHARE]
        for found in self._measure(search.option, [steps.rows[number : number + 1] for number in numbers]):
            search.remember(found, identity)

    def _follow(self) -> StopReason:
        while self._queue:
            if self.assessed >= self._problem.budget.targets:
                return StopReason.TARGET_BUDGET
            reason = self._out_of_time()
            if reason is not None:
                return reason
            count = min(_BATCH if self.best is not None else 1, len(self._queue))
            asked: dict[int, list[Rows]] = {}
            for prospect in (heapq.heappop(self._queue) for _ in range(count)):
                asked.setdefault(prospect.parent.option, []).append(prospect.all_steps())
            for option, steps in asked.items():
                self._measure(option, steps)
        return StopReason.QUEUE_EXHAUSTED

    def _out_of_time(self) -> StopReason | None:
        """After the first window only for what is expected to be better (D-27)."""
        budget = self._problem.budget
        spent = self._problem.clock() - self._started
        if budget.first_s is None or spent < budget.first_s:
            return None
        if self.best is not None and self._queue[0].estimate >= self.best.price:
            return StopReason.INSUFFICIENT_EXPECTED_GAIN
        return StopReason.TIME_BUDGET if spent >= budget.most_s else None

    def _measure(self, option: int, sets: list[Rows]) -> list[PricedTarget]:
        """Those that are new."""
        search = self._options[option]
        asked = []
        for steps in sets:
            target = search.target(steps)
            if target is not None and target not in self._seen:
                self._seen.add(target)
                asked.append((target, steps))
        if not asked:
            return []
        self.assessed += len(asked)
        found = search.priced(asked)
        self._meet(found)
        return found

    def _meet(self, targets: list[PricedTarget]) -> None:
        for target in targets:
            if not target.feasible:
                self._expand(target)
            elif self.best is None or self._rank(target) < self._rank(self.best):
                self.best = target

    def _rank(self, target: PricedTarget) -> tuple[float, ...]:
        return target.rank(self._cache, self._problem.options[target.option].is_bound)

    def _expand(self, parent: PricedTarget) -> None:
        steps = self._options[parent.option].steps(parent)
        if len(steps.rows) == 0 or not (parent.lacking > 0).any():
            return
        left = np.maximum(parent.lacking - np.maximum(steps.reliefs, 0), 0)
        estimates = parent.price + steps.prices + [least(steps, one) for one in left]
        order = np.argsort(estimates, kind="stable")[: self._problem.budget.targets].tolist()
        for first in (None, *order[:_BATCH]):
            chosen = cover(steps, parent.lacking, first)
            if chosen is not None:
                self._push(parent.price + float(steps.prices[chosen].sum()), parent, steps, chosen)
        for number in order:
            self._push(float(estimates[number]), parent, steps, [number])

    def _push(self, estimate: float, parent: PricedTarget, steps: Steps, chosen: list[int]) -> None:
        self._ordinal += 1
        heapq.heappush(self._queue, _Prospect(estimate, self._ordinal, parent, steps, chosen))

    def _lighten(self) -> None:
        """Leaves out steps of the best target that it does not need."""
        best: PricedTarget | None = None
        while self.best is not None and self.best is not best and len(self.best.steps) > 1:
            best = self.best
            self._measure(best.option, [np.delete(best.steps, one, axis=0) for one in range(len(best.steps))])
