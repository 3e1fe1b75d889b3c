"""How planning one admission ends."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Generic

from ninfer.planner.planning_session import PlanT, RefusalFacts


class StopReason(enum.StrEnum):
    """Why planning ended with this target."""

    NO_PRESSURE = "no_pressure"
    """It fits, and nobody had to give anything up."""
    QUEUE_EXHAUSTED = "queue_exhausted"
    """The search has seen everything it had."""
    TARGET_BUDGET = "target_budget"
    TIME_BUDGET = "time_budget"
    INSUFFICIENT_EXPECTED_GAIN = "insufficient_expected_gain"
    """What is left would cost more, as far as estimates tell."""
    MAXIMAL = "maximal"
    """Nothing fits as it is: everything is given up that nobody protects, except the source."""


@dataclass(frozen=True)
class Explanation:
    """Why under pressure this target was chosen. targets: how many were assessed; now_ns: until the prompt is computed;
    loss_ns: what the cache is worth less then; steps: how many of each kind; affected: checkpoints that save less;
    cost_source: "generic" or "calibrated"."""

    targets: int
    now_ns: float
    loss_ns: float
    steps: dict[str, int]
    affected: int
    cost_source: str

    @property
    def price_ns(self) -> float:
        return self.now_ns + self.loss_ns


@dataclass(frozen=True)
class Planned(Generic[PlanT]):
    """plan: sealed, of candidates[candidate]. needs_transfer: copies take their time.

    refused: the deepest frontier that did not fit, coming: the deepest one whose copy is still on its way; 0 if nothing
    of the kind is deeper than the chosen one. explanation: of a search.
    """

    plan: PlanT
    candidate: int
    frontier: int
    needs_transfer: bool
    stop_reason: StopReason
    refused: int = 0
    coming: int = 0
    explanation: Explanation | None = None


@dataclass(frozen=True)
class TemporarilyBlocked:
    """Tried again after a lane, a transaction or the revision has changed."""

    refusal: RefusalFacts


@dataclass(frozen=True)
class PermanentlyInfeasible:
    """The root alone exceeds this engine."""

    refusal: RefusalFacts
