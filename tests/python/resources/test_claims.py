"""Claims, edges, adoption and what happens when a start fails (C2, D-29)."""

from __future__ import annotations

import pytest

from ninfer.resources.claim import ClaimState
from ninfer.resources.context_cache_options import ContextCacheOptions
from ninfer.resources.removal_reason import RemovalReason
from ninfer.resources.reuse_key import ReuseKey
from tests.python.resources.played_engine import CLOSURE, ENDPOINT, PlayedEngine, aborted

TEXT = list(range(3000))
DISABLED = ReuseKey(reads=False, publishes=False)


@pytest.fixture
def engine() -> PlayedEngine:
    return PlayedEngine(ContextCacheOptions(max_private_continuations=2))


def test_a_request_takes_a_cell_and_gives_it_back(engine: PlayedEngine) -> None:
    request = engine.begin(TEXT[:100])
    assert engine.manager.statistics().private_active == 1
    engine.discard(request)
    assert request.claim.state is ClaimState.ENDED
    assert engine.manager.statistics().private_used == 0


def test_without_a_free_cell_nothing_is_claimed(engine: PlayedEngine) -> None:
    for _ in range(2):
        engine.begin(TEXT[:100])
    assert not engine.manager.has_free_cell()
    assert engine.manager.claim(9, ReuseKey(), None) is None
    assert engine.manager.cell_victims() == [], "active ones are nobody's to release"
    assert engine.manager.claim(9, DISABLED, None) is not None, "it needs none"


def test_a_disabled_request_leaves_nothing(engine: PlayedEngine) -> None:
    before = engine.manager.statistics()
    request = engine.begin(TEXT[:100], DISABLED)
    assert request.claim.cell is None
    engine.discard(request)
    assert engine.manager.statistics() == before


def test_a_taken_over_cell_stays_its_own(engine: PlayedEngine) -> None:
    owner = engine.keep(TEXT[:100])
    request = engine.begin_best(TEXT[:200])
    assert (request.owner, request.claim.cell) == (owner, 0)
    assert engine.manager.protected_owners() == []
    engine.finish(request)
    assert engine.manager.statistics().private_used == 1
    assert engine.manager.statistics().removed == {"consumed": 1}


@pytest.mark.parametrize("has_state", [True, False])
@pytest.mark.parametrize("start", [None, 80])
def test_what_was_taken_over_for_nothing_comes_back(has_state: bool, start: int | None) -> None:
    """Its place, class, session and kind are as before; what was deeper than the start is gone."""
    engine = PlayedEngine(has_state=has_state)
    key = ReuseKey(session="s")
    owner = engine.keep(TEXT[:100], key, captures=[50])
    (before,) = engine.manager.slots()
    offer = next(one for one in engine.offers(TEXT[:200], key) if one.use == "consume")
    request = engine.begin(TEXT[:200], key, offer, start)
    engine.discard_at_once(request)
    (after,) = engine.manager.slots()
    assert (after.session, after.retention, after.state, after.kinds) == ("s", before.retention, "idle", before.kinds)
    assert after.tokens == (start or 100)
    assert engine.manager.statistics().removed == {"consumed": 1}
    again = engine.begin_best(TEXT[:200], key)
    assert (again.owner, again.claim.offer and again.claim.offer.frontier) == (owner, start or 100)
    engine.finish(again)
    engine.release(owner, RemovalReason.ERASED)
    assert engine.manager.statistics().private_used == 0


def test_a_capture_at_the_start_stays_with_what_comes_back(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:100])
    request = engine.begin_best(TEXT[:200])
    capture = engine.capture(request, 100)
    engine.discard_at_once(request)
    assert capture not in engine.contexts.checkpoints, "the endpoint serves the same prompts"
    assert [slot.kinds for slot in engine.manager.slots()] == [(ENDPOINT,)]


def test_an_anchor_that_was_taken_over_for_nothing_is_as_before(engine: PlayedEngine) -> None:
    engine = PlayedEngine(ContextCacheOptions(max_private_continuations=1))
    engine.keep(TEXT[:100], captures=[50])
    request = engine.begin_best([*TEXT[:60], 7, 7])
    assert request.claim.takes_owner and not request.claim.source_goes
    engine.discard_at_once(request)
    assert [(slot.state, slot.tokens) for slot in engine.manager.slots()] == [("idle", 50)]


def test_a_retained_source_is_protected_until_the_end(engine: PlayedEngine) -> None:
    source = engine.keep(TEXT[:100], captures=[50])
    request = engine.begin_best([*TEXT[:60], 7, 7])
    assert engine.manager.protected_owners() == [source]
    assert engine.manager.cell_victims() == []
    engine.discard(request)
    assert engine.manager.protected_owners() == []
    assert engine.manager.cell_victims()[0] == source


def test_a_request_is_not_in_its_own_way() -> None:
    engine = PlayedEngine(ContextCacheOptions(max_private_continuations=3))
    source = engine.keep(TEXT[:100], captures=[50])
    request = engine.begin_best([*TEXT[:60], 7, 7])
    assert engine.manager.protected_owners(request.claim) == []
    other = engine.begin_best([*TEXT[:60], 8, 8])
    assert engine.manager.protected_owners(request.claim) == [source]
    engine.discard(other)
    engine.discard(request)


def test_a_twin_that_waits_to_be_deleted_stays_until_then(engine: PlayedEngine) -> None:
    request = engine.begin(TEXT[:200])
    engine.capture(request, 100)
    engine.capture(request, 100, CLOSURE)
    engine.contexts.finish(request.owner, tuple(TEXT[:200]), "", ENDPOINT)
    engine.manager.adopt_finish(request.claim, request.owner, ENDPOINT)
    assert len(engine.manager.doomed()) == 1
    offer = next(one for one in engine.offers(TEXT[:150]) if one.use == "continue")
    engine.begin(TEXT[:150], offer=offer)
    engine.manager.check_invariants()
    assert engine.manager.statistics().removed == {"consumed": 1}, "the endpoint"


def test_what_is_about_to_be_taken_over_serves_nobody_else(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:100], captures=[50])
    claim = engine.manager.claim(77, ReuseKey(), engine.offers(TEXT[:200])[0])
    assert claim is not None
    assert engine.offers(TEXT[:200]) == []
    engine.manager.abort_admission(claim, None)
    assert len(engine.offers(TEXT[:200])) == 3


def test_an_admission_that_never_started_changes_nothing(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:100], captures=[50])
    before = engine.manager.statistics()
    for offer in engine.offers(TEXT[:200]) + engine.offers(TEXT[:60]):
        claim = engine.manager.claim(77, ReuseKey(), offer)
        assert claim is not None
        assert engine.manager.statistics().private_claimed == 1
        engine.manager.abort_admission(claim, None)
        assert engine.manager.statistics() == before
        engine.manager.check_invariants()


def test_an_aborted_start_reports_what_it_lost(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:100], ReuseKey(session="s"), captures=[50])
    offer = engine.offers(TEXT[:60], ReuseKey(session="s"))[1]
    assert offer.use == "continue"
    claim = engine.manager.claim(77, ReuseKey(session="s"), offer)
    assert claim is not None and len(claim.deletes) == 1
    engine.contexts.delete(list(claim.deletes))
    engine.manager.abort_admission(claim, aborted(list(claim.deletes)))
    engine.manager.check_invariants()
    assert engine.manager.statistics().removed == {"discarded": 1}
    (slot,) = engine.manager.slots()
    assert (slot.tokens, slot.session, slot.state) == (50, "s", "idle"), "the binding is as it was"


def test_adoption_refuses_another_set_of_the_same_size(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:100], captures=[30, 50])
    offer = next(one for one in engine.offers(TEXT[:60]) if one.use == "continue")
    claim = engine.manager.claim(77, ReuseKey(), offer)
    assert claim is not None
    result, owner = engine.contexts.start(offer.checkpoint, "continue")
    wrong = aborted(engine.contexts.owners[owner].checkpoints[:1])
    wrong.end = "committed"
    before = engine.manager.statistics()
    with pytest.raises(AssertionError):
        engine.manager.adopt_admission(claim, wrong, owner)
    assert engine.manager.statistics() == before, "compared before anything is changed"
    engine.manager.adopt_admission(claim, result, owner)


def test_a_protected_owner_cannot_have_lost_anything(engine: PlayedEngine) -> None:
    source = engine.keep(TEXT[:100], captures=[50])
    engine.begin_best([*TEXT[:60], 7, 7])
    claim = engine.manager.claim(77, DISABLED, None)
    assert claim is not None
    result, owner = engine.contexts.start()
    result.removed = engine.contexts.owners[source].checkpoints[:1]
    with pytest.raises(AssertionError):
        engine.manager.adopt_admission(claim, result, owner)


def test_what_a_plan_gave_up_is_gone_for_memory(engine: PlayedEngine) -> None:
    victim = engine.keep(TEXT[:100], captures=[50])
    engine.begin([9] * 50, evict=[victim])
    engine.manager.check_invariants()
    assert engine.manager.statistics().removed == {"pressure": 2}
    assert engine.offers(TEXT[:200]) == []


def test_a_cut_source_is_consumed_even_where_it_was_to_continue() -> None:
    engine = PlayedEngine(has_state=False)
    engine.keep(TEXT[:100], captures=[30, 60])
    offer = next(one for one in engine.offers(TEXT[:50]) if one.takes_owner)
    assert engine.manager.surviving_frontiers(offer, start=49) == {30}
    request = engine.begin(TEXT[:50], offer=offer, start=49)
    assert engine.manager.statistics().removed == {"consumed": 2}
    engine.finish(request)


def test_surviving_checkpoints_of_each_use(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:2000], captures=[50, 80])
    by_use = {(one.frontier, one.use): one for one in engine.offers(TEXT[:2100])}
    survive = engine.manager.surviving_frontiers
    assert survive(by_use[2000, "continue"]) == {50, 80, 2000}
    assert survive(by_use[2000, "consume"]) == {50, 80}
    assert survive(by_use[80, "continue"]) == {50, 80}
    assert survive(by_use[80, "retain"]) == frozenset()
    assert survive(None) == frozenset()


def test_a_checkpoint_that_was_shortened_is_found_under_its_new_name(engine: PlayedEngine) -> None:
    owner = engine.keep(TEXT[:100])
    (before,) = engine.contexts.owners[owner].checkpoints
    after = engine.contexts.capture(owner, tuple(TEXT[:64]), "", "session_endpoint")
    engine.contexts.delete([before])
    claim = engine.manager.claim(77, DISABLED, None)
    assert claim is not None
    result, started = engine.contexts.start()
    result.shortened = [(before, after, 64)]
    engine.manager.adopt_admission(claim, result, started)
    engine.manager.check_invariants()
    assert engine.offers(TEXT[:80])[0].checkpoint == after


def test_victims_go_by_class_then_by_last_use() -> None:
    engine = PlayedEngine(ContextCacheOptions(max_private_continuations=5))
    live = engine.keep([1] * 40, ReuseKey(session="s"))
    engine.keep([2] * 40)
    recent = engine.finish_owner(engine.begin_best([2] * 50))
    old, young = engine.keep([3] * 40), engine.keep([4] * 40)
    order = []
    while victims := engine.manager.cell_victims():
        victim = victims[0]
        engine.release(victim, RemovalReason.CATALOG_FULL)
        order.append(victim)
    assert order == [old, young, recent, live]
    assert engine.manager.statistics().removed["catalog_full"] == 4


def test_a_hit_makes_a_source_recently_used() -> None:
    engine = PlayedEngine(ContextCacheOptions(max_private_continuations=4))
    older, younger = engine.keep(TEXT[:100], captures=[50]), engine.keep([9] * 40)
    engine.discard(engine.begin_best([*TEXT[:60], 7, 7]))
    assert engine.manager.cell_victims()[0] == younger
    engine.release(younger, RemovalReason.CATALOG_FULL)
    assert engine.manager.cell_victims()[0] == older


def test_sources_of_the_request_itself_go_last(engine: PlayedEngine) -> None:
    first = engine.keep(TEXT[:100], captures=[50])
    other = engine.keep([9] * 40)
    offers = engine.offers(TEXT[:200])
    assert {offer.owner for offer in offers} == {first}
    assert engine.manager.cell_victims(offers)[0] == other
    engine.release(other, RemovalReason.CATALOG_FULL)
    assert engine.manager.cell_victims(offers)[0] == first, "else the request would wait for ever"


def test_of_the_sources_the_first_goes_last(engine: PlayedEngine) -> None:
    shallow = engine.keep(TEXT[:60], ReuseKey(session="one"))
    deep = engine.keep([*TEXT[:50], *[7] * 50], ReuseKey(session="two"), captures=[50])
    shallower_too = engine.offers(TEXT[:200], ReuseKey(session="three"))
    assert {offer.owner for offer in shallower_too} == {shallow, deep}
    for first in (shallow, deep):
        offers = sorted(shallower_too, key=lambda offer: offer.owner != first)
        assert engine.manager.cell_victims(offers)[0] == ({shallow, deep} - {first}).pop()
