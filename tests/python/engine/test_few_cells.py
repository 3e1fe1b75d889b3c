"""As few places for conversations as lanes: the options allow it, so every request gets its turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ninfer import native
from ninfer.engine.copies import CopyBudget
from ninfer.engine.openers import Blocked
from ninfer.engine.request import CacheHints, Request
from ninfer.resources.retention import RetentionClass
from ninfer.resources.reuse_report import ReuseReason
from tests.fixtures.seed import SEED
from tests.fixtures.stepped_engine import ComparedEngine
from tests.python.engine.cached_models import MakePair

FAMILIES = ("hybrid", "llama")
SLOW_COPIES = CopyBudget(decoding_bytes=4_000, alone_bytes=4_000)


def prompt_of(test: str) -> list[int]:
    print(f"NINFER_TEST_SEED={SEED}")
    return [int(one) for one in np.random.default_rng([SEED, *test.encode()]).integers(10, 265, 150)]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("cells", [1, 2])
@pytest.mark.parametrize("budget", [None, SLOW_COPIES])
def test_sessions_that_ask_the_same_take_turns(
    make_pair: MakePair, family: str, cells: int, budget: CopyBudget | None
) -> None:
    """Every idle conversation is a source that has to stay: it is somebody else's latest."""
    pair = make_pair(family, max_concurrency=cells, max_private_continuations=cells, device_state_slots=2)
    engine = ComparedEngine(pair.cached, pair.cold, budget)
    prompt = prompt_of("turns")
    for number in range(3 * cells + 1):
        timings = engine.answer(prompt, cache=CacheHints(session_id=f"s{number}")).finished.timings
        assert timings.prompt_n == (1 if number else len(prompt)), "what stands in the way is what it starts from"
    engine.warm.check()
    statistics = engine.warm.loop.view().statistics
    assert statistics is not None and statistics.private_used == cells


@pytest.mark.parametrize("family", FAMILIES)
def test_whose_only_cell_was_taken_over_goes_on_from_what_it_had(make_pair: MakePair, family: str) -> None:
    pair = make_pair(family, max_concurrency=1, max_private_continuations=1)
    engine = ComparedEngine(pair.cached, pair.cold)
    prompt = prompt_of("first")
    mine = [*prompt, *engine.answer(prompt, cache=CacheHints(session_id="mine")).tokens]
    for session in ("other", "mine", "other"):
        longer = [*mine, *prompt_of(session)[:40]]
        answer = engine.answer(longer, cache=CacheHints(session_id=session))
        assert answer.finished.timings.cache_n >= len(mine) - 1
        (slot,) = engine.warm.loop.view().slots
        assert slot.session == session
    engine.answer([*mine, *prompt_of("nobody")[:40]])
    assert engine.warm.loop.view().slots[0].session is None
    engine.warm.check()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_conversation_goes_with_the_start_that_gets_its_cell_or_not_at_all(
    make_pair: MakePair, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = make_pair(family, max_concurrency=1, max_private_continuations=1)
    engine = ComparedEngine(pair.cached, pair.cold)
    kept, other = prompt_of("kept"), prompt_of("other")
    engine.answer(kept, cache=CacheHints(session_id="kept"))
    before = engine.warm.loop.view().slots
    answer = engine.ask(other, cache=CacheHints(session_id="other"))
    engine.warm.loop._break_off(engine.warm.loop._interrupted())
    program, opener = engine.warm.parts.program, engine.warm.loop._admission._opener
    with monkeypatch.context() as patched:
        patched.setattr(program, "start_transaction", lambda *plan: program.release_owner(0))
        assert isinstance(opener.open(engine.warm.live(answer)), Blocked)
    assert engine.warm.loop.view().slots == before
    engine.warm.parts.catalog.check_invariants()
    engine.warm.run(answer)
    engine.assert_same(answer, other)
    statistics = engine.warm.loop.view().statistics
    assert statistics is not None and statistics.removed["catalog_full"] > 0
    assert [slot.session for slot in engine.warm.loop.view().slots] == ["other"]
    assert engine.answer(kept).finished.reuse.shortfall.reason is ReuseReason.EVICTED
    engine.warm.check()


def test_who_may_not_give_its_cell_up_now_is_passed_over(make_pair: MakePair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = make_pair("hybrid", max_concurrency=1, max_private_continuations=2)
    engine = ComparedEngine(pair.cached, pair.cold)
    for session in ("one", "two"):
        engine.answer(prompt_of(session), cache=CacheHints(session_id=session))
    catalog = engine.warm.parts.catalog
    somebody = native.must(engine.warm.program.owner(catalog.cell_victims()[0])).checkpoints[0]
    wanted = catalog.cell_victims()
    monkeypatch.setattr(catalog, "cell_victims", lambda offers: [somebody, *wanted])  # which is no owner to the program
    engine.answer(prompt_of("three"), cache=CacheHints(session_id="three"))
    assert {slot.session for slot in engine.warm.loop.view().slots} == {"two", "three"}
    engine.warm.check()


@pytest.mark.parametrize("family", FAMILIES)
def test_sessions_that_ask_the_same_at_once(make_pair: MakePair, family: str) -> None:
    pair = make_pair(family, max_concurrency=2, max_private_continuations=2)
    engine = ComparedEngine(pair.cached, pair.cold, SLOW_COPIES)
    prompt = prompt_of("at once")
    answers = [engine.ask(prompt, cache=CacheHints(session_id=f"s{number}")) for number in range(6)]
    engine.warm.run(*answers)
    engine.warm.run()
    for answer in answers:
        engine.assert_same(answer, prompt)
    engine.warm.check()


@pytest.mark.parametrize("family", FAMILIES)
def test_who_gets_no_cell_of_an_idle_engine_runs_without(
    make_pair: MakePair, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = make_pair(family, max_concurrency=1, max_private_continuations=1)
    engine = ComparedEngine(pair.cached, pair.cold)
    prompt = prompt_of("without")
    engine.answer(prompt, cache=CacheHints(session_id="kept"))
    monkeypatch.setattr(engine.warm.parts.catalog, "cell_victims", lambda offers=(): [])
    engine.answer(prompt, cache=CacheHints(session_id="other"))
    engine.warm.check()
    slots = engine.warm.loop.view().slots
    assert [slot.retention for slot in slots] == [RetentionClass.LIVE_SESSION]


def test_who_is_blocked_while_copies_run_is_tried_again_when_they_end(make_pair: MakePair) -> None:
    """Their end need not move the program's revision."""
    pair = make_pair("llama")
    engine = ComparedEngine(pair.cached, pair.cold)
    prompt = prompt_of("blocked")
    answer = engine.ask(prompt)
    admission, parts = engine.warm.loop._admission, engine.warm.parts
    tried: list[bool] = []
    opener = admission._opener

    class Refuses:
        def open(self, request: Request, **more: object) -> Blocked | None:
            tried.append(parts.copies.expected)
            return Blocked("something is in the way") if parts.copies.expected else opener.open(request)

    admission._opener = Refuses()
    engine.warm.loop._break_off(engine.warm.loop._interrupted())
    parts.copies.expect()
    for _ in range(3):
        admission.admit()
    assert tried == [True]
    engine.warm.run(answer)
    assert tried == [True, False]
    engine.assert_same(answer, prompt)


class CopiesOpen:
    """Statistics that say that a copy is on its way."""

    copies_open = 1

    def __init__(self, real: native.ProgramStatistics) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def test_nobody_else_waits_for_the_copies_of_a_head_that_left(make_pair: MakePair) -> None:
    pair = make_pair("llama")
    engine = ComparedEngine(pair.cached, pair.cold)
    admission, parts = engine.warm.loop._admission, engine.warm.parts
    opener, tried = admission._opener, list[int]()

    class WaitsOnce:
        def open(self, request: Request, **more: object) -> Blocked | None:
            tried.append(request.id)
            return Blocked("a copy is on its way", passes=True) if len(tried) == 1 else opener.open(request)

    admission._opener = WaitsOnce()
    first, second = (engine.ask(prompt_of(name)) for name in ("first", "second"))
    engine.warm.loop._break_off(engine.warm.loop._interrupted())
    admission.admit()
    statistics: Any = CopiesOpen(parts.statistics)
    parts.statistics = statistics
    admission.admit()
    assert tried == [first.request_id]
    engine.warm.service.cancel(first.request_id, "gone")
    engine.warm.loop._break_off(engine.warm.loop._interrupted())
    admission.admit()
    assert tried == [first.request_id, second.request_id]
    engine.warm.run()
    engine.assert_same(second, prompt_of("second"))
