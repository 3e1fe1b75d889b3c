"""What a finished or broken-off request becomes (C3, C11, D-17, D-20), captures, and shared prefixes (C8)."""

from __future__ import annotations

import pytest

from ninfer.frontend.prompt_boundaries import PromptBoundaries
from ninfer.resources.context_cache_options import ContextCacheOptions
from ninfer.resources.evidence import Evidence
from ninfer.resources.publication import CaptureRoom
from ninfer.resources.retention import RetentionClass
from ninfer.resources.reuse_key import ReuseKey
from ninfer.resources.slot_facts import SlotFacts
from tests.fixtures.fake_contexts import FakePrompt
from tests.python.resources.played_engine import ANCHOR, CLOSURE, ENDPOINT, REPLAY, PlayedEngine

TEXT = list(range(3000))
S = ReuseKey(session="s")
DISPOSABLE, RECENT, LIVE = RetentionClass.DISPOSABLE, RetentionClass.RECENT_PRIVATE, RetentionClass.LIVE_SESSION


@pytest.fixture
def engine() -> PlayedEngine:
    return PlayedEngine()


def slot(engine: PlayedEngine, cell: int) -> SlotFacts:
    return next(one for one in engine.manager.slots() if one.cell == cell)


def classes(engine: PlayedEngine) -> list[tuple[RetentionClass, str | None]]:
    return [(one.retention, one.session) for one in engine.manager.slots()]


def test_classes_of_finished_requests(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:100])
    assert classes(engine) == [(DISPOSABLE, None)], "anonymous, from root"
    engine.finish(engine.begin_best(TEXT[:150]))
    assert classes(engine) == [(RECENT, None)], "anonymous, extended a private owner"
    engine.keep([9] * 40, S)
    assert classes(engine) == [(RECENT, None), (LIVE, "s")]


def test_a_shared_source_extends_nobody(engine: PlayedEngine) -> None:
    request = engine.begin(TEXT[:100])
    engine.capture_shared(request, 50)
    engine.discard(request)
    engine.finish(engine.begin_best([*TEXT[:60], 7]))
    assert classes(engine) == [(DISPOSABLE, None)]


def test_a_newer_result_replaces_the_binding(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:100], S)
    engine.keep([9] * 40, S)
    assert classes(engine) == [(DISPOSABLE, None), (LIVE, "s")]


def test_an_older_request_that_finishes_later_does_not(engine: PlayedEngine) -> None:
    older, newer = engine.begin(TEXT[:100], S), engine.begin([9] * 40, S)
    engine.finish(newer)
    engine.finish(older)
    assert classes(engine) == [(DISPOSABLE, None), (LIVE, "s")]
    engine.keep([8] * 40, S)
    assert classes(engine) == [(DISPOSABLE, None), (DISPOSABLE, None), (LIVE, "s")]


def test_an_older_request_that_went_on_from_the_newer_result_stays_the_latest(engine: PlayedEngine) -> None:
    claim_order = engine.begin([5] * 20, S)  # takes the lower number
    engine.keep(TEXT[:100], S)
    engine.discard(claim_order)
    offer = engine.offers(TEXT[:200], S)[0]
    engine.ids = 0
    engine.finish(engine.begin(TEXT[:200], S, offer))
    assert classes(engine) == [(LIVE, "s")]


def test_sessions_of_different_salts_are_different(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:100], ReuseKey(salt="a", session="s"))
    engine.keep(TEXT[:100], ReuseKey(salt="b", session="s"))
    assert classes(engine) == [(LIVE, "s"), (LIVE, "s")]


def test_a_broken_off_prefill_is_kept_and_changes_no_binding(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:100], S)
    request = engine.begin(TEXT[:900], S)
    engine.break_off(request, 640)
    assert classes(engine) == [(LIVE, "s"), (DISPOSABLE, None)]
    assert engine.offers(TEXT[:900], S)[0].frontier == 640


def test_a_broken_off_request_leaves_what_it_took_over_with_its_session(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:100], S, captures=[60])
    request = engine.begin_best(TEXT[:900], S)
    engine.break_off(request, 640)
    assert classes(engine) == [(LIVE, "s")]
    assert slot(engine, 0).kinds == (ANCHOR, ANCHOR)


def test_a_discarded_request_takes_what_it_took_over_with_it(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:100], S, captures=[60])
    engine.discard(engine.begin_best(TEXT[:900], S))
    assert engine.manager.slots() == ()
    assert engine.manager.statistics().sessions == 0
    assert engine.manager.statistics().removed == {"consumed": 1, "discarded": 1}


def test_roles_pass_on_from_turn_to_turn(engine: PlayedEngine) -> None:
    for number in range(12):
        end = 100 * (number + 1)
        request = engine.begin_best(TEXT[:end])
        engine.capture(request, end - 30, CLOSURE)
        engine.capture(request, end - 10, REPLAY)
        engine.finish(request)
    kinds = slot(engine, 0).kinds
    assert kinds == (*[ANCHOR] * 8, CLOSURE, REPLAY, ENDPOINT)
    assert engine.manager.statistics().removed["superseded"] == 2 * 11 - 8


def test_a_long_tool_turn_keeps_its_last_round_only(engine: PlayedEngine) -> None:
    request = engine.begin(TEXT[:200])
    engine.capture(request, 100, CLOSURE)
    engine.capture(request, 190, REPLAY)
    engine.finish(request)
    for number in range(60):
        end = 200 + 20 * (number + 1)
        round_ = engine.begin_best(TEXT[:end])
        assert round_.offer is not None and round_.offer.frontier >= end - 20
        engine.capture(round_, end - 5, REPLAY)
        engine.finish(round_)
    assert slot(engine, 0).kinds == (CLOSURE, ANCHOR, REPLAY, ENDPOINT), "and one endpoint, 1,024 tokens deep"


def test_doomed_checkpoints_serve_nobody_and_wait(engine: PlayedEngine) -> None:
    request = engine.begin(TEXT[:2000])
    for frontier in range(100, 1000, 100):
        engine.capture(request, frontier)
    assert [engine.contexts.checkpoint(one).frontier for one in engine.manager.doomed()] == [100]
    assert engine.offers(TEXT[:150]) == []
    engine.manager.check_invariants()
    engine.finish(request)
    assert engine.manager.doomed() == ()


def test_captures_leave_a_place_for_the_endpoint(engine: PlayedEngine) -> None:
    request = engine.begin(TEXT[:2000])
    frontier = 0
    while engine.manager.capture_room(request.claim, shared=False) is CaptureRoom.FREE:
        engine.capture(request, frontier := frontier + 100)
    assert frontier // 100 >= 8 + 3
    engine.finish(request)


def test_a_cell_without_room_is_only_read(engine: PlayedEngine) -> None:
    request = engine.begin(TEXT[:2000])
    while engine.manager.capture_room(request.claim, shared=False) is CaptureRoom.FREE:
        engine.capture(request, len(engine.contexts.checkpoints) * 100 + 100)
    engine.contexts.finish(request.owner, tuple(TEXT[:2000]), "", ENDPOINT)
    engine.manager.adopt_finish(request.claim, request.owner, ENDPOINT)  # and nothing was deleted yet
    assert {one.use for one in engine.offers(TEXT[:2500])} == {"retain"}
    engine.delete_doomed()
    assert engine.offers(TEXT[:2500])[0].use == "consume"


class TestSharedPrefixes:
    @pytest.fixture
    def engine(self) -> PlayedEngine:
        return PlayedEngine(ContextCacheOptions(max_shared_prefixes=2))

    def test_they_serve_everybody_and_survive_their_maker(self, engine: PlayedEngine) -> None:
        request = engine.begin(TEXT[:100], ReuseKey(session="a"))
        engine.capture_shared(request, 50)
        engine.discard(request)
        (offer,) = engine.offers(TEXT[:80], ReuseKey(session="b"))
        assert (offer.use, offer.shared, offer.cell) == ("retain", 0, None)

    def test_a_full_catalog_recycles_the_least_recently_used(self, engine: PlayedEngine) -> None:
        request = engine.begin(TEXT[:100])
        for start in range(2):
            engine.capture_shared(request, 50 + start)
        engine.finish(request)
        other = engine.begin_best([*TEXT[:50], 7])  # uses the one of 50 tokens
        assert other.offer is not None and other.offer.frontier == 50
        engine.finish(other)
        last = engine.begin([8] * 100)
        engine.capture_shared(last, 40)
        assert sorted(prefix for prefix in engine.shared_frontiers()) == [40, 50]
        assert engine.manager.statistics().removed["shared_full"] == 1

    def test_a_request_recycles_nothing_that_it_extends(self, engine: PlayedEngine) -> None:
        request = engine.begin(TEXT[:100])
        engine.capture_shared(request, 50)
        engine.capture_shared(request, 60)
        engine.discard(request)
        longer = engine.begin_best(TEXT[:100])
        assert engine.capture_shared(longer, 70) is None

    def test_what_another_request_reads_is_not_recycled(self, engine: PlayedEngine) -> None:
        request = engine.begin(TEXT[:100])
        engine.capture_shared(request, 50)
        engine.discard(request)
        reader = engine.begin_best([*TEXT[:60], 7])
        engine.capture_shared(engine.begin([8] * 50), 40)
        engine.capture_shared(engine.begin([9] * 50), 40)
        assert sorted(engine.shared_frontiers()) == [40, 50]
        engine.discard(reader)
        engine.capture_shared(engine.begin([6] * 50), 30)
        assert sorted(engine.shared_frontiers()) == [30, 40]

    def test_declared_ones_have_credit_for_a_while(self, engine: PlayedEngine) -> None:
        request = engine.begin(TEXT[:100])
        engine.capture_shared(request, 50, Evidence.EXPLICIT_BOUNDARY)
        engine.capture_shared(request, 60, Evidence.REQUESTED_AUTOMATIC)
        engine.discard(request)
        for _ in range(30):
            engine.discard(engine.begin([9] * 50))
        assert engine.capture_shared(engine.begin([9] * 50), 40) is None, "31 admissions after it was declared"
        assert engine.capture_shared(engine.begin([9] * 50), 40) is not None

    def test_requests_without_the_cache_age_nothing(self, engine: PlayedEngine) -> None:
        request = engine.begin(TEXT[:100])
        engine.capture_shared(request, 50, Evidence.EXPLICIT_BOUNDARY)
        engine.capture_shared(request, 60, Evidence.REQUESTED_AUTOMATIC)
        engine.discard(request)
        for _ in range(40):
            engine.discard(engine.begin([9] * 50, key=ReuseKey(reads=False, publishes=False)))
        assert engine.capture_shared(engine.begin([9] * 50), 40) is None

    def test_credit_ends_with_the_first_use(self, engine: PlayedEngine) -> None:
        request = engine.begin(TEXT[:100])
        engine.capture_shared(request, 50, Evidence.EXPLICIT_BOUNDARY)
        engine.capture_shared(request, 60, Evidence.EXPLICIT_BOUNDARY)
        engine.discard(request)
        engine.discard(engine.begin_best([*TEXT[:50], 7]))
        assert engine.capture_shared(engine.begin([9] * 50), 40) is not None
        assert sorted(engine.shared_frontiers()) == [40, 60]

    def test_what_is_there_is_not_proposed_again(self, engine: PlayedEngine) -> None:
        request = engine.begin(TEXT[:100])
        engine.capture_shared(request, 50)
        boundaries = PromptBoundaries(leading_end=50, tools_end=30)
        facts = engine.manager.capture_facts(request.prompt, ReuseKey(), boundaries)
        assert facts.already_shared == {50}
        assert [at for at, _ in facts.named] == [30, 50], "what could be made, whether it is there or not"
        assert facts.repeated == frozenset()

    def test_grid_points_need_two_domains(self) -> None:
        engine = PlayedEngine(ContextCacheOptions(auto_prefix_grid=True))
        boundaries = PromptBoundaries(raw=True)
        for key, repeated in ((S, set()), (S, set()), (ReuseKey(), {256, 512}), (ReuseKey(), {256, 512})):
            request = engine.begin(TEXT[:600], key)
            facts = engine.manager.capture_facts(request.prompt, key, boundaries)
            assert facts.repeated == repeated
            engine.discard(request)
            claim = engine.manager.claim(1000 + engine.ids, key, None)
            assert claim is not None
            result, owner = engine.contexts.start()
            engine.manager.adopt_admission(claim, result, owner, facts)
            engine.contexts.close(owner)
            engine.manager.discard(claim)


def test_slots_show_bytes_by_tier(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:100], captures=[50, 60])
    anchor, other, end = sorted(engine.contexts.checkpoints.values(), key=lambda one: one.frontier)
    anchor.image_on_device, anchor.image_on_host = False, True
    end.pages_on_device, end.pages_on_host = 3, 2
    (shown,) = engine.manager.slots()
    assert (shown.device_bytes, shown.host_bytes) == (3000 + 600, 2000 + 300)
    assert (shown.state, shown.tokens, other.frontier) == ("idle", 100, 60)


def test_an_endpoint_that_is_passed_in_prefill_is_replaced_like_one(engine: PlayedEngine) -> None:
    """D-24: the most anchors there may be; the one goes whose loss costs the fewest tokens, not the shallowest."""
    request = engine.begin(TEXT[:2900])
    for frontier in (300, 310, *range(600, 2400, 300)):
        engine.capture(request, frontier)
    handle = engine.contexts.capture(request.owner, tuple(TEXT[:2800]), "", ANCHOR)
    engine.manager.adopt_capture(request.claim, handle, ANCHOR, was_endpoint=True)
    doomed = [engine.contexts.checkpoint(one).frontier for one in engine.manager.doomed()]
    assert doomed == [310], "10 tokens above the one before"


def test_only_the_deepest_endpoint_counts_and_only_if_it_gains(engine: PlayedEngine) -> None:
    def endpoint(tokens: int) -> int | None:
        prompt = FakePrompt(tuple(TEXT[:tokens]))
        return engine.manager.capture_facts(prompt, ReuseKey(), PromptBoundaries()).endpoint

    engine.keep(TEXT[:1100], ReuseKey(session="one"))
    assert endpoint(1500) == 1100
    assert endpoint(1100) is None, "it is not gone on from"
    engine.keep(TEXT[:1400], ReuseKey(session="two"), captures=[1000])
    assert endpoint(1500) is None, "the deepest one has an anchor 400 tokens before"
