"""All cells are taken: whose place it becomes, and when (C1, C2)."""

from __future__ import annotations

import pytest

from ninfer.resources.context_cache_options import ContextCacheOptions
from ninfer.resources.reuse_key import ReuseKey
from tests.fixtures.fake_contexts import FakePrompt
from tests.python.resources.played_engine import ANCHOR, ENDPOINT, Played, PlayedEngine, aborted

S = ReuseKey(session="s")


@pytest.fixture
def full() -> PlayedEngine:
    """Two cells, taken by two sessions."""
    engine = PlayedEngine(ContextCacheOptions(max_private_continuations=2))
    engine.keep([1] * 40, ReuseKey(session="one"), captures=[20])
    engine.keep([2] * 40, ReuseKey(session="two"))
    return engine


def test_whose_place_is_needed_goes_with_the_start(full: PlayedEngine) -> None:
    victim = full.manager.cell_victims()[0]
    claim = full.manager.claim(9, S, None, replaces=victim)
    assert claim is not None
    assert full.manager.cell_victims() != [] and victim not in full.manager.cell_victims(), "nobody else takes it too"
    assert full.offers([1] * 50) == [], "and nobody starts from it"
    evicted = full.contexts.evict([victim])
    _, owner = full.contexts.start()
    full.manager.adopt_admission(claim, evicted, owner)
    assert full.manager.statistics().removed == {"catalog_full": 2}
    assert [(slot.state, slot.session) for slot in full.manager.slots()] == [("active", None), ("idle", "two")]
    full.finish(Played(claim, owner, FakePrompt((3,) * 40), None))
    assert [slot.session for slot in full.manager.slots()] == ["s", "two"]


@pytest.mark.parametrize("gone", [False, True])
def test_an_aborted_start_has_taken_the_place_or_not(full: PlayedEngine, gone: bool) -> None:
    """It may have been cancelled after its releases."""
    victim = full.manager.cell_victims()[0]
    claim = full.manager.claim(9, S, None, replaces=victim)
    assert claim is not None
    full.manager.abort_admission(claim, aborted(full.contexts.evict([victim]).removed) if gone else None)
    full.manager.check_invariants()
    assert [slot.session for slot in full.manager.slots()] == (["two"] if gone else ["one", "two"])
    assert full.manager.has_free_cell() == gone


def test_a_foreign_source_is_taken_over_only_where_there_is_no_other_place(full: PlayedEngine) -> None:
    prompt = FakePrompt((*([1] * 40), 7, 7))
    assert {one.use for one in full.manager.shortlist(prompt, S)} == {"retain"}
    offers = full.manager.shortlist(prompt, S, only_place=True)
    assert {one.use for one in offers} == {"continue"} and offers[0].frontier == 40
    request = full.begin(prompt.tokens, S, offers[0])
    full.finish(request)
    assert [(slot.session, slot.kinds) for slot in full.manager.slots()] == [
        ("s", (ANCHOR, ANCHOR, ENDPOINT)),
        ("two", (ENDPOINT,)),
    ]
    back = full.manager.shortlist(FakePrompt((*([1] * 40), 8)), ReuseKey(session="one"))
    assert back[0].frontier == 40, "who comes back finds its end"
