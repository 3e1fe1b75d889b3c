"""One option in a search: what its checkpoints are worth, and what its targets come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ninfer.economics.machine_cost import Rows
from ninfer.economics.transfer_cost import Numbers
from ninfer.planner.option_value import OptionValue, option_value
from ninfer.planner.planning_problem import PlanningOption, PlanningProblem
from ninfer.planner.priced_target import PricedTarget
from ninfer.planner.session_columns import ASSESSMENT, DEGRADATION, KINDS, RECOVERY, RELIEF, RESIDUAL
from ninfer.planner.step_cover import Steps
from ninfer.planner.step_prices import StepPrices, step_prices
from ninfer.resources.cache_value import CacheValue

NO_STEPS: Rows = np.zeros((0, len(DEGRADATION)), dtype=np.int64)
_EVICT = KINDS.index("evict")
# Steps after which everything is still there.
_KEEPING = [KINDS.index(kind) for kind in ("drop_host_pages", "drop_host_image", "pages_to_host", "image_to_host")]
_NAME = [DEGRADATION[name] for name in ("kind", "owner", "checkpoint", "device_pages", "frontier")]


class SearchSession(Protocol):
    """One planning problem of the program, with its facts in the tables of session_columns.py.

    degrade: None for steps that mean nothing together, or if there is no place for more targets. assess_many: facts of
    the targets, and recoveries of the checkpoints that differ from the identity. baseline: recoveries of all, there.
    """

    def degradations(self, target: int, /) -> Rows: ...
    def degrade(self, target: int, steps: Rows, /) -> int | None: ...
    def assess_many(self, targets: Sequence[int], /) -> tuple[Rows, Rows]: ...
    def baseline(self, option: int, /) -> Rows: ...


@dataclass
class OptionSearch:
    """measured: what single steps from the identity really cost, by their names. losable: owners of which something may
    be lost; None: of all."""

    session: SearchSession
    problem: PlanningProblem
    cache: CacheValue
    option: int
    identity: int
    value: OptionValue
    prices: StepPrices
    measured: dict[bytes, float] = field(default_factory=dict)
    losable: set[int] | None = None

    @classmethod
    def of(
        cls, session: SearchSession, problem: PlanningProblem, cache: CacheValue, option: int, identity: int
    ) -> OptionSearch:
        value = option_value(session.baseline(option), RECOVERY, problem.cost, cache)
        prices = step_prices(value, problem.cost, problem.page_bytes, problem.image_bytes)
        return cls(session, problem, cache, option, identity, value, prices)

    def target(self, steps: Rows) -> int | None:
        return self.session.degrade(self.identity, steps)

    def priced(self, asked: Sequence[tuple[int, Rows]]) -> list[PricedTarget]:
        """Targets with their steps from the identity on."""
        facts, recoveries = self.session.assess_many([target for target, _ in asked])
        now = self.problem.cost.immediate(facts, ASSESSMENT) * (1 + self.asked.waiting)
        prices = self.problem.cost.recovery(recoveries, RECOVERY)
        after = self.value.savings_after(len(facts), recoveries, prices, RECOVERY)
        loss = self._loss(after)
        return [
            PricedTarget(
                option=self.option,
                target=target,
                steps=steps,
                facts=facts[index],
                now_ns=float(now[index]),
                loss_ns=float(loss[index]),
                affected=tuple(self.value.checkpoints[after[index] < self.value.saving].tolist()),
                lacking=np.append(facts[index, RESIDUAL], self._places_lacking(steps)),
            )
            for index, (target, steps) in enumerate(asked)
        ]

    @property
    def asked(self) -> PlanningOption:
        return self.problem.options[self.option]

    def _loss(self, after: Numbers) -> Numbers:
        """What the cache is worth less; of a capture for everybody also negative."""
        before, portfolio = self.value.saving, self.value.portfolio
        if self.asked.new is None:
            return portfolio.future_loss(before, after)
        return -portfolio.net_gain(before, after, self.asked.new, np.zeros(len(after)))

    def remember(self, single: PricedTarget, identity: PricedTarget) -> None:
        """In a set, a step is taken to cost what it costs alone."""
        self.measured[_name(single.steps[0])] = single.price - identity.price

    def steps(self, parent: PricedTarget) -> Steps:
        """What could help against what the target lacks."""
        rows = self.session.degradations(parent.target)
        if parent.lacking[-1] > 0:
            rows = np.concatenate([rows, self._evictions_for_a_place(rows)])
        if self.losable is not None:
            keeps = np.isin(rows[:, DEGRADATION["kind"]], _KEEPING)
            rows = rows[keeps | np.isin(rows[:, DEGRADATION["owner"]], list(self.losable))]
        frees = [row[_NAME[0]] == _EVICT and self._frees_place(int(row[_NAME[1]])) for row in rows]
        reliefs = np.column_stack([rows[:, RELIEF], np.array(frees, dtype=np.int64)])
        prices = self.prices.of(rows)
        if self.measured:
            known = [self.measured.get(_name(row)) for row in rows]
            prices = np.array([one if one is not None else price for one, price in zip(known, prices, strict=True)])
        # What makes things better is taken at no price, but not for its own sake.
        return Steps(rows, np.maximum(prices, 1.0), reliefs)

    def _places_lacking(self, steps: Rows) -> int:
        if not self.asked.needs_place:
            return 0
        evicted = steps[steps[:, DEGRADATION["kind"]] == _EVICT, DEGRADATION["owner"]]
        return 1 - self.cache.free_places - sum(self._frees_place(int(owner)) for owner in evicted)

    def _frees_place(self, owner: int) -> bool:
        return owner in self.cache.owners and self.cache.owners[owner].frees_place

    def _evictions_for_a_place(self, listed: Rows) -> Rows:
        """Of owners that have nothing of what the program lacks, but a place in the catalog."""
        out = set(listed[listed[:, DEGRADATION["kind"]] == _EVICT, DEGRADATION["owner"]].tolist())
        owners = [owner for owner in self.evictable() if owner not in out and self._frees_place(owner)]
        rows = np.zeros((len(owners), len(DEGRADATION)), dtype=np.int64)
        rows[:, DEGRADATION["kind"]] = _EVICT
        rows[:, DEGRADATION["owner"]] = owners
        return rows

    def evictable(self) -> list[int]:
        """Owners that a target may do without, the least recently used first."""
        out = {self._source_owner(), *self.problem.protected_owners}
        owners = [owner for owner in self.value.owners.tolist() if owner not in out]
        return sorted(owners, key=lambda owner: self.cache.owners[owner].used_at if owner in self.cache.owners else -1)

    def _source_owner(self) -> int:
        at = np.flatnonzero(self.value.checkpoints == self.asked.source)
        return int(self.value.owner_of_row[at[0]]) if len(at) else 0


def _name(step: Rows) -> bytes:
    return step[_NAME].tobytes()
