"""Which candidate is taken, and how planning ends where none fits; with a session that answers as it is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from ninfer.planner.materialization_planner import plan_materialization
from ninfer.planner.planning_result import PermanentlyInfeasible, Planned, StopReason, TemporarilyBlocked


@dataclass(frozen=True)
class FakeRefusal:
    kind: str = "no_pages"
    wanted: int = 9
    found: int = 3


NO_PAGES = FakeRefusal()
Found = PermanentlyInfeasible | TemporarilyBlocked | Planned[str]


@dataclass(frozen=True)
class FakeAssessment:
    status: str
    is_short_of_cache: bool = False
    refusal: FakeRefusal | None = None

    @property
    def feasible(self) -> bool:
        return self.status in ("ready", "needs_transfer")


READY, TRANSFER = FakeAssessment("ready"), FakeAssessment("needs_transfer")
SHORT = FakeAssessment("temporarily_blocked", True, NO_PAGES)
BLOCKED = FakeAssessment("temporarily_blocked", False, FakeRefusal("no_lane", 3, 2))
IMPOSSIBLE = FakeAssessment("permanently_infeasible", False, FakeRefusal("over_context", 9000, 4096))


@dataclass(frozen=True)
class FakeCandidate:
    frontier: int
    checkpoint: int = 0

    @property
    def is_root(self) -> bool:
        return self.checkpoint == 0


@dataclass
class FakeSession:
    """identities and maximals: the assessment of each option's two targets. Targets are option and 1000 + option."""

    identities: Sequence[FakeAssessment]
    maximals: Sequence[FakeAssessment] = ()
    refusal: FakeRefusal | None = None
    left_out: frozenset[int] = frozenset()
    calls: list[str] = field(default_factory=list)

    def open(self, options: Sequence[str], protected_owners: Sequence[int], /) -> FakeRefusal | None:
        self.calls.append(f"open {len(options)} {list(protected_owners)}")
        return self.refusal

    def why_left_out(self, option: int, /) -> FakeRefusal | None:
        return FakeRefusal("copy_in_flight", 0, 1) if option in self.left_out else None

    def identity(self, option: int, /) -> int:
        assert option not in self.left_out
        return option

    def maximal(self, option: int, /) -> int:
        assert option not in self.left_out
        return 1000 + option

    def degrade(self, target: int, steps: Sequence[int], /) -> int | FakeRefusal:
        """Targets after steps are the same ones; a step is an option that cannot take it."""
        self.calls.append(f"degrade {target}")
        return FakeRefusal("stale_handle", 0, 0) if target in steps else target

    def assess(self, target: int, /) -> FakeAssessment:
        self.calls.append(f"assess {target}")
        return self.identities[target] if target < 1000 else self.maximals[target - 1000]

    def seal(self, target: int, /) -> str:
        self.calls.append(f"seal {target}")
        return f"plan {target}"


def planned(session: FakeSession, *candidates: FakeCandidate) -> Found:
    every = (FakeCandidate(0), *candidates)
    return plan_materialization(session, every, [str(number) for number in range(len(every))], [5])


def test_the_deepest_that_fits_is_sealed_at_once() -> None:
    session = FakeSession([READY, READY, READY])
    found = planned(session, FakeCandidate(50, 1), FakeCandidate(70, 2))
    assert found == Planned("plan 2", 2, 70, False, StopReason.NO_PRESSURE)
    assert session.calls == ["open 3 [5]", "assess 0", "assess 1", "assess 2", "seal 2"]


def test_root_alone() -> None:
    assert planned(FakeSession([READY])) == Planned("plan 0", 0, 0, False, StopReason.NO_PRESSURE)


def test_what_does_not_fit_falls_to_the_next_and_is_remembered() -> None:
    found = planned(FakeSession([READY, TRANSFER, SHORT]), FakeCandidate(50, 1), FakeCandidate(70, 2))
    assert found == Planned("plan 1", 1, 50, True, StopReason.NO_PRESSURE, refused=70)


def test_depth_comes_before_readiness_and_readiness_before_order() -> None:
    found = planned(FakeSession([READY, READY, TRANSFER]), FakeCandidate(50, 1), FakeCandidate(51, 2))
    assert isinstance(found, Planned) and found.candidate == 2
    found = planned(FakeSession([READY, TRANSFER, READY]), FakeCandidate(50, 1), FakeCandidate(50, 2))
    assert isinstance(found, Planned) and found.candidate == 2
    found = planned(FakeSession([READY, READY, READY]), FakeCandidate(50, 1), FakeCandidate(50, 2))
    assert isinstance(found, Planned) and found.candidate == 1


def test_the_wanted_use_of_one_source_comes_first_although_another_is_ready() -> None:
    uses = (FakeCandidate(50, 1), FakeCandidate(50, 1))
    found = planned(FakeSession([READY, TRANSFER, READY]), *uses)
    assert isinstance(found, Planned) and found.candidate == 1
    found = planned(FakeSession([READY, SHORT, READY]), *uses)
    assert isinstance(found, Planned) and (found.candidate, found.refused) == (2, 0)


def test_under_pressure_the_deepest_source_is_kept_beside_its_request() -> None:
    session = FakeSession([SHORT, SHORT, SHORT], [READY, TRANSFER, SHORT])
    found = planned(session, FakeCandidate(50, 1), FakeCandidate(70, 2))
    assert found == Planned("plan 1001", 1, 50, True, StopReason.MAXIMAL, refused=70)


def test_root_is_what_remains() -> None:
    found = planned(FakeSession([SHORT, SHORT], [READY, SHORT]), FakeCandidate(50, 1))
    assert found == Planned("plan 1000", 0, 0, False, StopReason.MAXIMAL, refused=50)


def test_an_option_that_was_left_out_leaves_the_others_as_they_are() -> None:
    candidates = (FakeCandidate(50, 1), FakeCandidate(70, 2))
    found = planned(FakeSession([READY, READY, READY], left_out=frozenset({2})), *candidates)
    assert found == Planned("plan 1", 1, 50, False, StopReason.NO_PRESSURE, coming=70)
    session = FakeSession([SHORT, SHORT, SHORT], [READY, SHORT, READY], left_out=frozenset({2}))
    assert planned(session, *candidates) == Planned("plan 1000", 0, 0, False, StopReason.MAXIMAL, 50, coming=70)


def test_steps_that_are_always_taken_leave_out_who_cannot_take_them() -> None:
    candidates, publications = [FakeCandidate(0), FakeCandidate(50, 1), FakeCandidate(70, 2)], ["0", "1", "2"]
    session = FakeSession([READY, READY, READY])
    found = plan_materialization(session, candidates, publications, [], [2])
    assert found == Planned("plan 1", 1, 50, False, StopReason.NO_PRESSURE, refused=0)
    assert session.calls[1:4] == ["degrade 0", "degrade 1", "degrade 2"]
    blocked = plan_materialization(FakeSession([READY, READY, READY]), candidates, publications, [], [0])
    assert blocked == TemporarilyBlocked(FakeRefusal("stale_handle", 0, 0))


@pytest.mark.parametrize("refusal", [FakeRefusal("transaction_open", 0, 1)])
def test_an_engine_that_plans_nothing_now_blocks(refusal: FakeRefusal) -> None:
    session = FakeSession([READY], refusal=refusal)
    assert planned(session) == TemporarilyBlocked(refusal)
    assert session.calls == ["open 1 [5]"]


def test_what_no_eviction_helps_blocks_without_a_search() -> None:
    session = FakeSession([BLOCKED, BLOCKED])
    found = planned(session, FakeCandidate(50, 1))
    assert isinstance(found, TemporarilyBlocked) and found.refusal.kind == "no_lane"
    assert session.calls[-1] == "assess 1"


def test_what_does_not_fit_even_alone_now_is_blocked() -> None:
    found = planned(FakeSession([SHORT, SHORT], [SHORT, SHORT]), FakeCandidate(50, 1))
    assert found == TemporarilyBlocked(NO_PAGES)


def test_what_never_fits_is_infeasible() -> None:
    found = planned(FakeSession([IMPOSSIBLE]))
    assert isinstance(found, PermanentlyInfeasible) and found.refusal.kind == "over_context"


def test_the_same_answers_give_the_same_choice() -> None:
    candidates = [FakeCandidate(50 + number % 3, number + 1) for number in range(15)]
    assessments = [READY, *([TRANSFER, READY, SHORT] * 5)]
    found = [planned(FakeSession(assessments), *candidates) for _ in range(3)]
    assert found[0] == found[1] == found[2]
