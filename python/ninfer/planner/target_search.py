"""A bounded best-first search for the cheapest complete target (L2).

A node is a target with exact facts. First each option gets a set of steps that is enough, and its most promising single
steps are assessed, so that what each costs and saves is known. Then a queue, ordered by the price paid plus an estimate
of what is still to be paid: a node that comes to its front is followed by its single steps, and by sets that should be
enough. Estimates order only: a target counts if the program says that it can be carried out, and the catalog has a
place for what it leaves.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ninfer.economics.machine_cost import Rows
from ninfer.economics.transfer_cost import Numbers
from ninfer.planner.option_search import NO_STEPS, OptionSearch, SearchSession
from ninfer.planner.planning_problem import PlanningProblem
from ninfer.planner.planning_result import StopReason
from ninfer.planner.priced_target import PricedTarget
from ninfer.planner.recency_ladder import RecencyLadder
from ninfer.planner.step_cover import Steps, cover, least, unit_prices

_BATCH = 8
# By reliefs that count what is shared for each, a set that should be enough falls short; covered again, it soon is not.
_MOST_COVERS = 8
# Of the targets, one part of so many goes into the options' single steps.
_PROBED_SHARE = 4


@dataclass(order=True)
class _Prospect:
    """A target that waits: one to be expanded, or, with steps, the one behind those chosen, not assessed yet."""

    estimate: float
    ordinal: int
    parent: PricedTarget = field(compare=False)
    steps: Steps | None = field(compare=False, default=None)
    chosen: list[int] = field(compare=False, default_factory=list)


class TargetSearch:
    """One search. best: what it has found."""

    def __init__(self, session: SearchSession, problem: PlanningProblem) -> None:
        self._session = session
        self._problem = problem
        self._cache = problem.value()
        self._options: dict[int, OptionSearch] = {}
        self._units: dict[int, Numbers] = {}
        self._queue: list[_Prospect] = []
        self._seen: set[int] = set()
        self._ordinal = 0
        self._started = problem.clock()
        self.best: PricedTarget | None = None
        self.assessed = 0

    def run(self, identities: Mapping[int, int]) -> StopReason:
        """Among what lies behind these identities, by option."""
        lacking = [one for option, identity in identities.items() if (one := self._add(option, identity)) is not None]
        probes = self._problem.budget.targets // (_PROBED_SHARE * max(len(lacking), 1))
        for identity in lacking:
            self._dive(identity)
        for identity in lacking:
            self._probe(identity, probes)
        reason = self._follow()
        self._lighten()
        return reason

    def _add(self, option: int, identity: int) -> PricedTarget | None:
        """The identity, if it lacks something."""
        search = OptionSearch.of(self._session, self._problem, self._cache, option, identity)
        self._options[option] = search
        [found] = search.priced([(identity, NO_STEPS)])
        if found.feasible:
            self._meet([found])
            return None
        if self._problem.by_recency:
            self._climb(search)
        self._note_units(search, found)
        self._meet([found])
        return found

    def _climb(self, search: OptionSearch) -> None:
        ladder = RecencyLadder(search)
        lowest = ladder.lowest()
        if lowest is not None:
            rung, target = lowest
            search.losable = set(ladder.oldest[:rung])
            self._seen.add(target.target)
            self._meet([target])

    def _dive(self, target: PricedTarget) -> None:
        """Straight to a set that is enough, whatever the clock says: with nothing found, everything would go."""
        for _ in range(_MOST_COVERS):
            steps = self._options[target.option].steps(target)
            chosen = cover(steps, target.lacking)
            if not chosen:
                return
            found = self._measure(target.option, [np.concatenate([target.steps, steps.rows[chosen]])])
            if not found or found[0].feasible:
                return
            [target] = found

    def _probe(self, identity: PricedTarget, count: int) -> None:
        """The single steps that promise most."""
        search = self._options[identity.option]
        steps = search.steps(identity)
        numbers = np.argsort(steps.prices, kind="stable")[:count].tolist()
        for start in range(0, len(numbers), _BATCH):
            if self._spent() >= self._problem.budget.most_s:
                break
            singles = [steps.rows[number : number + 1] for number in numbers[start : start + _BATCH]]
            for found in self._measure(identity.option, singles):
                search.remember(found, identity)
        self._note_units(search, identity)

    def _note_units(self, search: OptionSearch, identity: PricedTarget) -> None:
        """What nothing is known to relieve, since the identity does not lack it, counts as free."""
        self._units[search.option] = np.nan_to_num(unit_prices(search.steps(identity)), posinf=0.0)

    def _follow(self) -> StopReason:
        while self._queue:
            if self.assessed >= self._problem.budget.targets:
                return StopReason.TARGET_BUDGET
            reason = self._out_of_time()
            if reason is not None:
                return reason
            asked: dict[int, list[Rows]] = {}
            for _ in range(min(_BATCH if self.best is not None else 1, len(self._queue))):
                prospect = heapq.heappop(self._queue)
                if prospect.steps is None:
                    self._expand(prospect.parent)
                else:
                    steps = np.concatenate([prospect.parent.steps, prospect.steps.rows[prospect.chosen]])
                    asked.setdefault(prospect.parent.option, []).append(steps)
            for option, sets in asked.items():
                self._measure(option, sets)
        return StopReason.QUEUE_EXHAUSTED

    def _spent(self) -> float:
        """Seconds; 0 where time does not count."""
        return 0.0 if self._problem.budget.first_s is None else self._problem.clock() - self._started

    def _out_of_time(self) -> StopReason | None:
        """After the first window only for what is expected to be better (D-27)."""
        budget = self._problem.budget
        spent = self._spent()
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
                estimate = target.price + float(least(target.lacking, self._units[target.option]))
                self._push(_Prospect(estimate, 0, target))
            elif self.best is None or self._rank(target) < self._rank(self.best):
                self.best = target

    def _rank(self, target: PricedTarget) -> tuple[float, ...]:
        return target.rank(self._cache, self._problem.options[target.option].is_bound)

    def _expand(self, parent: PricedTarget) -> None:
        steps = self._options[parent.option].steps(parent)
        if len(steps.rows) == 0 or not (parent.lacking > 0).any():
            return
        left = parent.lacking - np.maximum(steps.reliefs, 0)
        estimates = parent.price + steps.prices + least(left, unit_prices(steps))
        order = np.argsort(estimates, kind="stable")[: self._problem.budget.targets].tolist()
        for first in (None, *order[:_BATCH]):
            chosen = cover(steps, parent.lacking, first)
            if chosen is not None:
                self._push(_Prospect(parent.price + float(steps.prices[chosen].sum()), 0, parent, steps, chosen))
        for number in order:
            self._push(_Prospect(float(estimates[number]), 0, parent, steps, [number]))

    def _push(self, prospect: _Prospect) -> None:
        if np.isfinite(prospect.estimate):
            self._ordinal += 1
            prospect.ordinal = self._ordinal
            heapq.heappush(self._queue, prospect)

    def _lighten(self) -> None:
        """Leaves out steps of the best target that it does not need."""
        best: PricedTarget | None = None
        while self.best is not None and self.best is not best and len(self.best.steps) > 1:
            best = self.best
            for start in range(0, len(best.steps), _BATCH):
                if self._spent() >= self._problem.budget.most_s:
                    return
                numbers = range(start, min(start + _BATCH, len(best.steps)))
                self._measure(best.option, [np.delete(best.steps, one, axis=0) for one in numbers])
