"""A target with its exact facts and its price."""

from __future__ import annotations

from dataclasses import dataclass, field

from ninfer.economics.machine_cost import Rows
from ninfer.planner.session_columns import ASSESSMENT, FEASIBLE
from ninfer.resources.cache_value import CacheValue


@dataclass(frozen=True)
class PricedTarget:
    """steps: degradation rows from the option's identity on. now_ns: until its prompt is computed; loss_ns: what the
    cache is worth less then. affected: checkpoints that save less. lacking: int64 [axes], cells included."""

    option: int
    target: int
    steps: Rows
    facts: Rows
    now_ns: float
    loss_ns: float
    affected: tuple[int, ...]
    lacking: Rows = field(repr=False)

    @property
    def price(self) -> float:
        """J of E3."""
        return self.now_ns + self.loss_ns

    @property
    def feasible(self) -> bool:
        """The program could carry it out, and the catalog has a place for what it leaves."""
        return self.fact("status") in FEASIBLE and self.lacking[-1] <= 0

    def fact(self, name: str) -> int:
        return int(self.facts[ASSESSMENT[name]])

    def rank(self, value: CacheValue, is_bound: bool) -> tuple[float, ...]:
        """The smallest one is the best: the price, and the seed's order where prices are equal (E4)."""
        hits = [value.hit_at[one] for one in self.affected if one in value.hit_at]
        copies = ("to_host", "to_device", "within_device")
        return (
            round(self.price),
            len(hits),
            max(hits, default=0),
            self.fact("owners_evicted"),
            self.fact("checkpoints_removed"),
            sum(self.fact(f"{name}_operations") for name in copies),
            sum(self.fact(f"{name}_bytes") for name in copies),
            self.fact("computed_tokens"),
            -self.fact("reused_tokens"),
            not is_bound,
            self.option,
            self.target,
        )
