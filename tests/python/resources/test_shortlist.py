"""Which sources are offered, in what order, and whether they are left alone or taken over (C4, C5, D-5, D-9, D-24)."""

from __future__ import annotations

import pytest

from ninfer.resources import shortlist
from ninfer.resources.checkpoint_kind import CheckpointKind
from ninfer.resources.context_cache_options import ContextCacheOptions
from ninfer.resources.removal_reason import RemovalReason
from ninfer.resources.reuse_key import ReuseKey
from ninfer.resources.source_choice import SourceSituation, wanted_uses
from ninfer.resources.source_offer import SourceOffer
from tests.fixtures.fake_contexts import FakePrompt
from tests.python.resources.played_engine import CLOSURE, REPLAY, PlayedEngine

TEXT = list(range(3000))
ALICE, BOB = ReuseKey(session="alice"), ReuseKey(session="bob")


@pytest.fixture
def engine() -> PlayedEngine:
    return PlayedEngine()


def uses(offers: list[SourceOffer]) -> list[tuple[int, str]]:
    return [(offer.frontier, offer.use) for offer in offers]


def test_an_empty_catalog_offers_nothing(engine: PlayedEngine) -> None:
    assert engine.offers(TEXT) == []


def test_a_finished_request_is_gone_on_from(engine: PlayedEngine) -> None:
    owner = engine.keep(TEXT[:500])
    (offer,) = engine.offers(TEXT[:600])
    assert (offer.owner, offer.use, offer.cell, offer.shared) == (owner, "consume", 0, None)
    assert offer.kind is CheckpointKind.SESSION_ENDPOINT


def test_one_token_is_always_computed(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:500], captures=[499])
    assert uses(engine.offers(TEXT[:500])) == [(499, "retain"), (499, "continue")]
    assert engine.offers(TEXT[:499]) == []


def test_an_endpoint_far_above_the_anchors_stays_as_one(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:1524], captures=[500])
    assert uses(engine.offers(TEXT[:2000]))[:2] == [(1524, "continue"), (1524, "consume")]
    plain = PlayedEngine()
    plain.keep(TEXT[:1523], captures=[500])
    assert uses(plain.offers(TEXT[:2000]))[0] == (1523, "consume")


def test_endpoint_anchors_can_be_turned_off() -> None:
    engine = PlayedEngine(ContextCacheOptions(endpoint_anchors=False))
    engine.keep(TEXT[:2000])
    assert uses(engine.offers(TEXT)) == [(2000, "consume")]


def test_a_branch_leaves_the_conversation_alone_while_a_cell_is_free() -> None:
    engine = PlayedEngine(ContextCacheOptions(max_private_continuations=2))
    engine.keep(TEXT[:500], captures=[200])
    branch = TEXT[:300] + [7] * 100
    assert uses(engine.offers(branch)) == [(200, "retain"), (200, "continue")]
    engine.keep([9] * 40)
    assert uses(engine.offers(branch)) == [(200, "continue")]


def test_a_broken_off_prefill_goes_on_where_it_ended(engine: PlayedEngine) -> None:
    request = engine.begin(TEXT[:500])
    engine.capture(request, 100)
    engine.break_off(request, 300)
    assert uses(engine.offers(TEXT[:500])) == [(300, "continue")]
    assert uses(engine.offers(TEXT[:200])) == [(100, "retain"), (100, "continue")]


@pytest.mark.parametrize(
    ("key", "markers"),
    [(BOB, ()), (ReuseKey(), ()), (ReuseKey(session="alice", publishes=False), ()), (ALICE, (200,))],
    ids=["another session", "no session", "publishes nothing", "explicit boundary there"],
)
def test_what_must_stay_is_retained(engine: PlayedEngine, key: ReuseKey, markers: tuple[int, ...]) -> None:
    engine.keep(TEXT[:500], ALICE, captures=[200])
    offers = engine.manager.shortlist(FakePrompt(tuple(TEXT[:300])), key, markers)
    assert uses(offers) == [(200, "retain")]


def test_the_endpoint_of_another_session_is_retained(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:500], ALICE)
    assert uses(engine.offers(TEXT[:600], BOB)) == [(500, "retain")]
    assert uses(engine.offers(TEXT[:600], ALICE)) == [(500, "consume")]


def test_what_somebody_reads_is_retained(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:500], captures=[200])
    reader = engine.begin(TEXT[:250], offer=engine.offers(TEXT[:250])[0])
    assert engine.manager.protected_owners() == [reader.offer.owner]
    assert {offer.use for offer in engine.offers(TEXT[:600])} == {"retain"}
    engine.finish(reader)
    assert "consume" in {offer.use for offer in engine.offers(TEXT[:600])}


def test_checkpoints_of_running_requests_are_retained(engine: PlayedEngine) -> None:
    running = engine.begin(TEXT[:500])
    engine.capture(running, 300)
    assert uses(engine.offers(TEXT[:400])) == [(300, "retain")]


def test_the_deepest_of_each_kind_and_owner(engine: PlayedEngine) -> None:
    request = engine.begin(TEXT[:500])
    for frontier in (100, 200):
        engine.capture(request, frontier)
    engine.capture(request, 300, CLOSURE)
    engine.capture(request, 400, REPLAY)
    engine.capture_shared(request, 50)
    engine.capture_shared(request, 60)
    engine.finish(request)
    offers = engine.offers(TEXT[:600])
    assert [offer.frontier for offer in offers if offer.use == "retain"] == [400, 300, 200, 60, 50]
    assert offers[0].frontier == 500
    assert all(len(offer.extends) == 2 for offer in offers), "both shared prefixes lie on the way"


def test_at_most_fifteen_and_the_own_session_first(engine: PlayedEngine) -> None:
    for number in range(20):
        engine.keep(TEXT[:100], ReuseKey(session=str(number)))
    offers = engine.offers(TEXT[:200], ReuseKey(session="3"))
    assert len(offers) == 15
    assert (offers[0].cell, offers[0].use) == (3, "consume")
    assert [offer.cell for offer in offers[1:4]] == [19, 18, 17], "then the last used"


def test_salts_never_cross(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:500], ReuseKey(salt="one"))
    assert engine.offers(TEXT[:600], ReuseKey(salt="two")) == []
    assert engine.offers(TEXT[:600]) == []
    assert len(engine.offers(TEXT[:600], ReuseKey(salt="one"))) == 1


def test_disabled_requests_and_catalogs_offer_nothing(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:500])
    assert engine.offers(TEXT[:600], ReuseKey(reads=False, publishes=False)) == []
    assert PlayedEngine(ContextCacheOptions(enabled=False)).offers(TEXT) == []


class TestWithoutRecurrentLayers:
    """A continuation serves any prefix of itself from its deepest checkpoint (D-9)."""

    @pytest.fixture
    def engine(self) -> PlayedEngine:
        return PlayedEngine(has_state=False)

    def test_the_longest_common_prefix_is_found(self, engine: PlayedEngine) -> None:
        near, far = TEXT[:1000] + [5] * 50, TEXT[:700] + [6] * 400
        engine.keep(far)
        engine.keep(near)
        offers = engine.offers(TEXT[:1500])
        assert [(offer.cell, offer.use) for offer in offers] == [
            (1, "retain"),
            (1, "consume"),
            (0, "retain"),
            (0, "consume"),
        ]

    def test_the_same_prompt_again(self, engine: PlayedEngine) -> None:
        request = engine.begin(TEXT[:40])
        engine.finish(request, output=[9] * 10)
        assert uses(engine.offers(TEXT[:40])) == [(50, "retain"), (50, "consume")]

    def test_an_appended_turn_takes_the_owner_over(self, engine: PlayedEngine) -> None:
        engine.keep(TEXT[:2000])
        assert uses(engine.offers(TEXT[:2100])) == [(2000, "consume")], "and no endpoint anchor: the ledger has it"

    def test_of_many_with_one_beginning_only_the_best_are_looked_at(
        self, engine: PlayedEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looked_at: list[SourceSituation] = []

        def counted(situation: SourceSituation) -> tuple[str, ...]:
            looked_at.append(situation)
            return wanted_uses(situation)

        monkeypatch.setattr(shortlist, "wanted_uses", counted)
        for number in range(100):
            length = 200 if number in (20, 70) else 100
            engine.keep(TEXT[:length] + [5000 + number] * 50, ReuseKey(session=str(number)))
        offers = engine.offers(TEXT[:300], ReuseKey(session="33"))
        assert [offer.cell for offer in offers[:3]] == [70, 20, 33], "the deepest, then the own session"
        assert [offer.cell for offer in offers if offer.use == "retain"][3:] == list(range(99, 99 - 11, -1))
        assert (len(offers), len(looked_at)) == (15, 15)

    def test_a_continuation_that_has_lost_its_end_agrees_no_further(self, engine: PlayedEngine) -> None:
        longer, shorter = engine.keep(TEXT[:1000], captures=[300]), engine.keep(TEXT[:500])
        assert engine.offers(TEXT[:400])[0].owner == shorter, "the last used of two that share all of it"
        assert engine.offers(TEXT[:900])[0].owner == longer
        end = engine.contexts.owners[longer].checkpoints[-1]
        engine.contexts.delete([end])
        engine.manager.note_removed([end], RemovalReason.PRESSURE)
        offers = engine.offers(TEXT[:900])
        assert [(offers[0].owner, offers[0].frontier), (offers[-1].owner, offers[-1].frontier)] == [
            (shorter, 500),
            (longer, 300),
        ]
