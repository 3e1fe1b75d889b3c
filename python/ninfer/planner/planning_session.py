"""The native planning session and its values, as far as the planner reads them. Tests bring their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar


class RefusalFacts(Protocol):
    """native.Refusal."""

    @property
    def kind(self) -> str: ...
    @property
    def wanted(self) -> int: ...
    @property
    def found(self) -> int: ...


class Assessment(Protocol):
    """native.TargetAssessment."""

    @property
    def status(self) -> str: ...
    @property
    def feasible(self) -> bool: ...
    @property
    def is_short_of_cache(self) -> bool: ...
    @property
    def refusal(self) -> RefusalFacts | None: ...


class Candidate(Protocol):
    """native.AdmissionCandidate."""

    @property
    def checkpoint(self) -> int: ...
    @property
    def is_root(self) -> bool: ...
    @property
    def frontier(self) -> int: ...


PublicationT = TypeVar("PublicationT", contravariant=True)
PlanT = TypeVar("PlanT", covariant=True)
StepT = TypeVar("StepT", contravariant=True)


class Session(Protocol[PublicationT, PlanT, StepT]):
    """native.PlanningSession."""

    def open(self, options: Sequence[PublicationT], protected_owners: Sequence[int], /) -> RefusalFacts | None: ...
    def why_left_out(self, option: int, /) -> RefusalFacts | None: ...
    def identity(self, option: int, /) -> int | RefusalFacts: ...
    def maximal(self, option: int, /) -> int | RefusalFacts: ...
    def degrade(self, target: int, steps: Sequence[StepT], /) -> int | RefusalFacts: ...
    def assess(self, target: int, /) -> Assessment | RefusalFacts: ...
    def seal(self, target: int, /) -> PlanT | RefusalFacts: ...
