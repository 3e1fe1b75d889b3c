"""What the catalog tells a planner about the worth of what it keeps."""

from __future__ import annotations

import pytest

from ninfer.resources.context_cache_options import ContextCacheOptions
from ninfer.resources.evidence import Evidence
from ninfer.resources.reuse_key import ReuseKey
from tests.python.resources.played_engine import PlayedEngine

TEXT = tuple(range(10, 250))


@pytest.fixture
def engine() -> PlayedEngine:
    return PlayedEngine()


def only(engine: PlayedEngine, owner: int) -> int:
    [checkpoint] = engine.contexts.owners[owner].checkpoints
    return checkpoint


def test_classes_have_their_weights_and_a_session_its_bond(engine: PlayedEngine) -> None:
    live = engine.finish_owner(engine.begin(TEXT[:40], ReuseKey(session="s")))
    once = engine.finish_owner(engine.begin(TEXT[100:140]))
    first = engine.begin(TEXT[200:220])
    engine.finish(first)
    extended = engine.finish_owner(engine.begin_best(TEXT[200:230]))
    owners = engine.manager.cache_value().owners
    assert {owner: value.weight for owner, value in owners.items()} == {live: 16.0, once: 1.0, extended: 4.0}
    assert [owner for owner, value in owners.items() if value.is_bound] == [live]
    assert owners[live].used_at < owners[once].used_at < owners[extended].used_at
    assert all(value.frees_place for value in owners.values())


def test_a_superseded_continuation_is_disposable(engine: PlayedEngine) -> None:
    former = engine.finish_owner(engine.begin(TEXT[:40], ReuseKey(session="s")))
    latest = engine.finish_owner(engine.begin(TEXT[100:140], ReuseKey(session="s")))
    owners = engine.manager.cache_value().owners
    assert (owners[former].weight, owners[latest].weight) == (1.0, 16.0)
    assert not owners[former].is_bound


def test_running_requests_are_nobody_s_to_give(engine: PlayedEngine) -> None:
    engine.begin(TEXT[:40])
    assert engine.manager.cache_value().owners == {}


def test_a_shared_prefix_is_worth_its_demand_and_its_credit(engine: PlayedEngine) -> None:
    request = engine.begin(TEXT[:100])
    shared = engine.capture_shared(request, 50, Evidence.EXPLICIT_BOUNDARY)
    assert shared is not None
    engine.finish(request)
    before = engine.manager.cache_value()
    owner = engine.contexts.checkpoints[shared].owner
    assert (before.owners[owner].weight, before.owners[owner].frees_place) == (0.0, False)
    assert before.credited == {shared}
    assert [demand for demand in before.demands if shared in demand] == [], "nobody has asked for it yet"
    engine.discard(engine.begin_best([*TEXT[:50], 7, 8, 9]))
    after = engine.manager.cache_value()
    assert after.credited == frozenset(), "used once, the credit is over"
    assert after.demands[-1] == {shared} and set(after.hit_at) >= {shared}


def test_one_demand_names_its_source_and_what_lies_on_the_way(engine: PlayedEngine) -> None:
    request = engine.begin(TEXT[:100])
    shared = engine.capture_shared(request, 50)
    anchor = engine.capture(request, 80)
    engine.finish(request)
    engine.begin_best([*TEXT[:80], 7, 8, 9])
    demand = engine.manager.cache_value().demands[-1]
    assert demand == {shared, anchor}


def test_what_waits_to_be_deleted_is_worth_nothing() -> None:
    engine = PlayedEngine(ContextCacheOptions(max_long_anchors_per_continuation=1))
    request = engine.begin(TEXT[:100])
    first = engine.capture(request, 20)
    engine.capture(request, 60)
    assert engine.manager.doomed() == (first,)
    assert engine.manager.cache_value().worthless == {first}


def test_only_the_last_32_requests_count(engine: PlayedEngine) -> None:
    request = engine.begin(TEXT[:100])
    shared = engine.capture_shared(request, 50)
    engine.finish(request)
    engine.discard(engine.begin_best([*TEXT[:50], 7, 8, 9]))
    for _ in range(31):
        engine.discard(engine.begin(TEXT[150:190]))
    assert len(engine.manager.cache_value().demands) == 32
    assert any(shared in demand for demand in engine.manager.cache_value().demands)
    engine.discard(engine.begin(TEXT[150:190]))
    assert not any(shared in demand for demand in engine.manager.cache_value().demands)
