"""Where the prompt cache has no room, or may not be used: answers stay the same, and nothing is kept that must not."""

from __future__ import annotations

import numpy as np
import pytest

from ninfer.engine.request import CacheHints
from ninfer.resources.reuse_report import ReuseReason
from tests.fixtures.seed import SEED
from tests.fixtures.stepped_engine import ComparedEngine
from tests.python.engine.cached_models import MakePair

FAMILIES = ("hybrid", "llama")


@pytest.fixture
def prompts(request: pytest.FixtureRequest) -> list[list[int]]:
    print(f"NINFER_TEST_SEED={SEED}")
    dice = np.random.default_rng([SEED, *request.node.nodeid.encode()])
    return [[int(one) for one in dice.integers(10, 265, 150)] for _ in range(12)]


def make_engine(make_pair: MakePair, family: str = "hybrid", **options: int) -> ComparedEngine:
    pair = make_pair(family, **options)
    return ComparedEngine(pair.cached, pair.cold)


@pytest.mark.parametrize("family", FAMILIES)
def test_without_a_cache_nothing_is_kept(make_pair: MakePair, prompts: list[list[int]], family: str) -> None:
    engine = make_engine(make_pair, family, context_cache=False)
    for _ in range(2):
        finished = engine.answer(prompts[0]).finished
        assert finished.timings.cache_n == 0
        assert finished.reuse.shortfall.reason is ReuseReason.DISABLED
    statistics = engine.warm.program.statistics()
    assert (statistics.owners, statistics.checkpoints) == (0, 0)
    assert statistics.pages_free == statistics.pages_total
    assert engine.warm.loop.view().slots == ()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_request_that_wants_no_cache_leaves_nothing_and_finds_nothing(
    make_pair: MakePair, prompts: list[list[int]], family: str
) -> None:
    engine = make_engine(make_pair, family)
    disabled = CacheHints(use=False)
    for _ in range(2):
        finished = engine.answer(prompts[0], cache=disabled).finished
        assert finished.timings.cache_n == 0
        assert finished.reuse.shortfall.reason is ReuseReason.DISABLED
    statistics = engine.warm.program.statistics()
    assert (statistics.owners, statistics.checkpoints) == (0, 0)
    assert engine.warm.loop.view().slots == ()
    engine.answer(prompts[0])
    assert engine.answer(prompts[0], cache=disabled).finished.timings.cache_n == 0
    assert len(engine.warm.loop.view().slots) == 1
    engine.warm.check()


@pytest.mark.parametrize("family", FAMILIES)
def test_salts_are_walls(make_pair: MakePair, prompts: list[list[int]], family: str) -> None:
    engine = make_engine(make_pair, family)
    one, two = CacheHints(salt="one", session_id="same"), CacheHints(salt="two", session_id="same")
    engine.answer(prompts[0], cache=one)
    finished = engine.answer(prompts[0], cache=two).finished
    assert (finished.timings.cache_n, finished.reuse.shortfall.reason) == (0, ReuseReason.NO_MATCH)
    assert engine.answer(prompts[0]).finished.timings.cache_n == 0
    finished = engine.answer(prompts[0], cache=CacheHints(salt="three")).finished
    assert (finished.timings.cache_n, finished.reuse.shortfall.reason) == (0, ReuseReason.SALT)
    assert engine.answer(prompts[0], cache=one).finished.timings.prompt_n == 1
    engine.warm.check()


def test_a_shared_salt_is_the_name_of_a_session() -> None:
    assert CacheHints(salt="name", sharing=True).key().salt == ""
    assert CacheHints(salt="name", sharing=True).key().session == "name"
    assert CacheHints(salt="name", session_id="one").key().salt == "name"
    assert not CacheHints(use=False).key().publishes


def test_without_any_room_for_state_nothing_is_kept_and_all_is_counted(
    make_pair: MakePair, prompts: list[list[int]]
) -> None:
    engine = make_engine(make_pair, device_state_slots=0, host_cache_mib=0)
    for _ in range(2):
        assert engine.answer(prompts[0]).finished.timings.cache_n == 0
    view = engine.warm.loop.view()
    assert view.captures_skipped == (("no_host_blocks", 2),)
    assert (view.captures_taken, view.endpoints_kept, view.endpoints_without_room) == (0, 0, 2)
    engine.warm.check()


def test_without_device_slots_everything_goes_on_from_host(make_pair: MakePair, prompts: list[list[int]]) -> None:
    engine = make_engine(make_pair, device_state_slots=0)
    for prompt in prompts:
        engine.answer(prompt)
    for prompt in prompts:
        finished = engine.answer(prompt).finished
        assert (finished.timings.prompt_n, finished.reuse.source) == (1, "mixed")
    engine.warm.check()


def test_few_slots_are_given_to_whoever_came_last(make_pair: MakePair, prompts: list[list[int]]) -> None:
    """Reuse does not end because the memory is full of what nobody asks for any more."""
    engine = make_engine(make_pair, device_state_slots=3, host_cache_mib=0)
    for prompt in prompts:
        engine.answer(prompt)
        longer = [*prompt, *engine.expected(prompt, 4), *prompts[0][:30]]
        assert engine.answer(longer).finished.timings.prompt_n <= 31
    removed = engine.warm.loop.view().statistics
    assert removed is not None and removed.removed["pressure"] > 0
    engine.warm.check()


def test_a_full_catalog_forgets_the_least_recently_used(make_pair: MakePair, prompts: list[list[int]]) -> None:
    engine = make_engine(make_pair, max_private_continuations=4)
    for prompt in prompts[:5]:
        engine.answer(prompt)
    finished = engine.answer(prompts[0]).finished
    assert (finished.timings.cache_n, finished.reuse.shortfall.reason) == (0, ReuseReason.EVICTED)
    assert engine.answer(prompts[4]).finished.timings.prompt_n == 1
    statistics = engine.warm.loop.view().statistics
    assert statistics is not None and statistics.private_used == 4
    assert statistics.removed["catalog_full"] > 0
    engine.warm.check()


@pytest.mark.parametrize("family", FAMILIES)
def test_pages_that_run_short_cost_reuse_and_nothing_else(
    make_pair: MakePair, prompts: list[list[int]], family: str
) -> None:
    engine = make_engine(make_pair, family, kv_capacity=1024, max_context=1024, host_cache_mib=1)
    for _ in range(2):
        for prompt in prompts:
            engine.answer(prompt)
    engine.warm.check()
