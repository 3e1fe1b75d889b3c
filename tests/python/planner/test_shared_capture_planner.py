"""What is published for everybody, beside the best of all that could be done, on small caches of a real program."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import pytest

from ninfer import native
from ninfer.engine.search_session import NativeSearchSession
from ninfer.planner.planning_problem import PlanningProblem, SearchBudget
from ninfer.planner.shared_capture_planner import SharedCapture, Skip, plan_shared_capture
from ninfer.resources.evidence import Evidence
from tests.fixtures.enumerated_targets import Enumerated, enumerated
from tests.fixtures.planning_domains import SmallCache
from tests.fixtures.seed import SEED
from tests.fixtures.smallest_models import smallest_hybrid, smallest_llama

WHOLE = SearchBudget(230, first_s=None)
WEIGHED = [
    (Evidence.EXPLICIT_BOUNDARY, False),
    (Evidence.REQUESTED_AUTOMATIC, False),
    (Evidence.ENGINE_OBSERVED, True),
]


@dataclass(frozen=True)
class Domain:
    cache: SmallCache
    problem: PlanningProblem
    all_targets: Enumerated

    def plan(self, evidence: Evidence, *, repeated: bool = False) -> SharedCapture | Skip:
        session = native.PlanningSession(self.cache.program)
        planned = plan_shared_capture(NativeSearchSession(session), self.problem, evidence, repeated=repeated)
        if isinstance(planned, SharedCapture):
            native.must(session.seal(planned.target))
        return planned

    @property
    def fits_as_it_is(self) -> bool:
        session = native.PlanningSession(self.cache.program)
        native.must(session.open([one.publication for one in self.problem.options], []))
        there = [one for one in range(len(self.problem.options)) if session.why_left_out(one) is None]
        found = [native.must(session.assess(native.must(session.identity(one)))) for one in there]
        return any(one.feasible for one in found) and self.problem.value().free_places > 0


@pytest.fixture(scope="module")
def domains() -> list[Domain]:
    print(f"NINFER_TEST_SEED={SEED}")
    dice = random.Random(SEED)
    models = [smallest_hybrid(), smallest_llama()]
    found: list[Domain] = []
    while len(found) < 200:
        cache = SmallCache(dice.choice(models), dice)
        problem = cache.capture_problem(WHOLE)
        session = native.PlanningSession(cache.program)
        if problem is None or session.open([one.publication for one in problem.options], []) is not None:
            continue
        whole = enumerated(session, problem, 240)
        if whole is not None:
            found.append(Domain(cache, problem, whole))
    return found


@pytest.mark.parametrize(("evidence", "repeated"), WEIGHED)
def test_it_is_published_exactly_where_that_is_strictly_worth_it(
    domains: list[Domain], evidence: Evidence, repeated: bool
) -> None:
    published = 0
    for domain in domains:
        planned, best = domain.plan(evidence, repeated=repeated), domain.all_targets.best
        if best is None or best >= 0:
            assert isinstance(planned, Skip), (planned, best)
            continue
        assert isinstance(planned, SharedCapture), (planned, best)
        assert planned.choice is not None
        assert planned.choice.explanation.price_ns == pytest.approx(best, rel=1e-6, abs=10)
        published += 1
    assert 20 < published < len(domains) - 20, published


def test_structure_alone_takes_spare_room_only(domains: list[Domain]) -> None:
    outcomes = {True: 0, False: 0}
    for domain in domains:
        planned = domain.plan(Evidence.ENGINE_STRUCTURAL)
        assert isinstance(planned, SharedCapture) == domain.fits_as_it_is
        assert isinstance(planned, Skip) or planned.choice is None
        outcomes[domain.fits_as_it_is] += 1
    assert min(outcomes.values()) > 0, outcomes


def test_named_by_two_structure_may_displace_as_well(domains: list[Domain]) -> None:
    displaced = 0
    for domain in domains:
        planned = domain.plan(Evidence.ENGINE_STRUCTURAL, repeated=True)
        worth = domain.all_targets.best is not None and domain.all_targets.best < 0
        assert isinstance(planned, SharedCapture) == (worth or domain.fits_as_it_is)
        displaced += worth and not domain.fits_as_it_is
    assert displaced > 0


@pytest.mark.parametrize("evidence", [Evidence.DEFAULT_AUTOMATIC, Evidence.ENGINE_OBSERVED])
def test_what_needs_repetition_is_not_published_for_one_request(domains: list[Domain], evidence: Evidence) -> None:
    assert {domain.plan(evidence) == Skip("not_repeated") for domain in domains[:20]} == {True}


def test_whoever_waits_for_it_makes_it_dearer(domains: list[Domain]) -> None:
    """So many waiting requests that no gain is worth the copies: only what copies nothing is left."""
    for domain in domains:
        options = [replace(one, waiting=10**9) for one in domain.problem.options]
        crowded = replace(domain, problem=replace(domain.problem, options=options))
        planned = crowded.plan(Evidence.EXPLICIT_BOUNDARY)
        if isinstance(planned, SharedCapture):
            assert planned.choice is not None and planned.choice.explanation.now_ns == 0
