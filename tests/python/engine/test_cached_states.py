"""Requests of an engine with a prompt cache in every state: cancelled, refused, put back, shut down and failed.

Copies move so few bytes per boundary that each takes several of them.
"""

from __future__ import annotations

import numpy as np
import pytest

from ninfer.engine.copies import CopyBudget
from ninfer.engine.events import Cancelled, Failed, Finished
from ninfer.engine.request import CacheHints, RequestState
from tests.fixtures.seed import SEED
from tests.fixtures.stepped_engine import Answer, ComparedEngine
from tests.python.engine.cached_models import MakePair

SLOW = CopyBudget(decoding_bytes=4096, alone_bytes=4096)
MANY = 1000


def words(node: str, count: int) -> list[int]:
    print(f"NINFER_TEST_SEED={SEED}")
    return [int(one) for one in np.random.default_rng([SEED, *node.encode()]).integers(10, 265, count)]


@pytest.fixture
def prompt(request: pytest.FixtureRequest) -> list[int]:
    """A page and a half: its anchor is not aligned, so going on from it copies a page."""
    return words(request.node.nodeid, 100)


@pytest.fixture
def engine(make_pair: MakePair) -> ComparedEngine:
    pair = make_pair("hybrid")
    return ComparedEngine(pair.cached, pair.cold, SLOW)


def step_until(engine: ComparedEngine, answer: Answer, state: RequestState) -> None:
    for _ in range(MANY):
        if engine.warm.live(answer).state is state:
            return
        engine.warm.step()
    raise AssertionError(f"{answer} never was {state}")


def cancel(engine: ComparedEngine, answer: Answer) -> None:
    engine.warm.service.cancel(answer.request_id, "gone")


@pytest.mark.parametrize("boundaries", range(8))
def test_cancelled_while_its_source_is_copied(engine: ComparedEngine, prompt: list[int], boundaries: int) -> None:
    engine.answer(prompt)
    before = engine.warm.program.statistics()
    answer = engine.ask(prompt)
    step_until(engine, answer, RequestState.MATERIALIZING)
    for _ in range(boundaries):
        engine.warm.step()
    assert not answer.events
    cancel(engine, answer)
    engine.warm.run(answer)
    assert answer.events == [Cancelled("gone")]
    engine.warm.run()
    engine.warm.check()
    after = engine.warm.program.statistics()
    assert (after.owners, after.checkpoints, after.pages_free) == (before.owners, before.checkpoints, before.pages_free)
    assert engine.answer(prompt).finished.timings.prompt_n == 1


def test_cancelled_when_the_transaction_has_just_committed(engine: ComparedEngine, prompt: list[int]) -> None:
    """Whatever the moment, either nothing was begun, or what was begun is given back."""
    engine.answer(prompt)
    for boundaries in range(30):
        answer = engine.ask(prompt)
        step_until(engine, answer, RequestState.MATERIALIZING)
        for _ in range(boundaries):
            engine.warm.step()
        if answer.ended:
            break
        cancel(engine, answer)
        engine.warm.run()
        engine.warm.check()
    else:
        raise AssertionError("no copy took so long")


def test_cancelled_while_a_capture_is_copied(engine: ComparedEngine, prompt: list[int]) -> None:
    """What it has computed stays, as soon as the copies let the sequence go."""
    answer = engine.ask(prompt)
    step_until(engine, answer, RequestState.PREFILLING)
    while engine.warm.live(answer).captures:
        engine.warm.step()
    cancel(engine, answer)
    engine.warm.step()
    assert engine.warm.live(answer).state is RequestState.TERMINAL_PENDING and not answer.events
    cancel(engine, answer)
    engine.warm.run(answer)
    assert answer.events == [Cancelled("gone")]
    assert engine.answer(prompt).finished.timings.prompt_n == 1
    engine.warm.check()


@pytest.mark.parametrize("tokens", [1, 3, 7])
def test_cancelled_while_it_is_answered(engine: ComparedEngine, prompt: list[int], tokens: int) -> None:
    answer = engine.ask(prompt, 12)
    while len(answer.tokens) < tokens:
        engine.warm.step()
    told = answer.tokens
    cancel(engine, answer)
    engine.warm.run()
    assert answer.events[-1] == Cancelled("gone")
    assert answer.tokens == told == engine.expected(prompt, 12)[: len(told)]
    # The last token of an answer was never computed.
    longer = [*prompt, *answer.tokens]
    assert engine.answer(longer).finished.timings.cache_n == len(longer) - 1
    engine.warm.check()


def test_an_end_is_told_when_what_is_kept_of_it_is_there(engine: ComparedEngine, prompt: list[int]) -> None:
    """A transaction is open for somebody else while the answer ends."""
    engine.answer(prompt)
    other = words(f"{prompt}", 30)
    ending = engine.ask(other, 3)
    step_until(engine, ending, RequestState.DECODING)
    engine.ask(prompt)
    step_until(engine, ending, RequestState.TERMINAL_PENDING)
    assert engine.warm.parts.scheduler.staged is not None
    assert not ending.ended, "it is told before it is kept"
    cancel(engine, ending)
    engine.warm.run(ending)
    assert isinstance(ending.events[-1], Finished), "it had ended before it was cancelled"
    engine.assert_same(ending, other, 3)
    engine.warm.run()
    engine.warm.check()


def test_a_transaction_that_aborts_sends_its_request_back(engine: ComparedEngine, prompt: list[int]) -> None:
    """Nobody cancelled the request, so it begins again, from the root."""
    engine.answer(prompt)
    answer = engine.ask(prompt)
    behind = engine.ask(prompt[:50])
    step_until(engine, answer, RequestState.MATERIALIZING)
    assert engine.warm.program.cancel_transaction()
    engine.warm.run()
    engine.assert_same(answer, prompt)
    assert answer.finished.timings.prompt_n == len(prompt)
    engine.assert_same(behind, prompt[:50])
    assert engine.warm.loop.view().aborted == 1
    engine.warm.check()


def test_a_request_that_is_cancelled_at_once_has_cost_nobody_anything(
    engine: ComparedEngine, prompt: list[int]
) -> None:
    """Its transaction is open then, and not even its releases have happened."""
    engine.answer(prompt)
    answer = engine.ask(prompt)
    step_until(engine, answer, RequestState.MATERIALIZING)
    program = engine.warm.program
    revision = program.resource_revision
    assert program.transaction_phase == "host_releases"
    cancel(engine, answer)
    engine.warm.run()
    assert answer.events == [Cancelled("gone")]
    assert program.resource_revision == revision
    engine.warm.check()


def test_a_deadline_ends_a_request_in_the_middle_of_its_transaction(engine: ComparedEngine, prompt: list[int]) -> None:
    engine.answer(prompt)
    answer = engine.ask(prompt, timeout_s=5.0)
    step_until(engine, answer, RequestState.MATERIALIZING)
    engine.warm.clock.now += 6.0
    engine.warm.run()
    assert answer.events == [Cancelled("deadline")]
    engine.warm.check()


def test_shutdown_in_the_middle_of_a_transaction(engine: ComparedEngine, prompt: list[int]) -> None:
    engine.answer(prompt)
    first = engine.ask(words(f"{prompt}", 40), 20)
    step_until(engine, first, RequestState.DECODING)
    answer = engine.ask(prompt)
    queued = engine.ask(prompt)
    step_until(engine, answer, RequestState.MATERIALIZING)
    engine.warm.service.stop(30.0)
    assert [one.events[-1] for one in (first, answer, queued)] == [Cancelled("shutdown")] * 3
    engine.warm.run()
    engine.warm.check()
    assert engine.warm.program.statistics().lanes_open == 0


def test_a_failure_in_the_middle_of_a_transaction_is_told_to_everybody(
    engine: ComparedEngine, prompt: list[int]
) -> None:
    engine.answer(prompt)
    answers = [engine.ask(words(f"{prompt}", 40), 20)]
    step_until(engine, answers[0], RequestState.DECODING)
    answers += [engine.ask(prompt), engine.ask(prompt)]
    step_until(engine, answers[1], RequestState.MATERIALIZING)
    engine.warm.loop.fail("broken")
    assert [one.events[-1] for one in answers] == [Failed("broken")] * 3
    assert engine.warm.parts.intake.live() == []


def test_an_owner_that_was_taken_over_survives_a_cancellation(make_pair: MakePair, prompt: list[int]) -> None:
    """The conversation that a broken-off request went on from is still there, with what the request had computed."""
    pair = make_pair("hybrid", prefill_chunk=64)
    engine = ComparedEngine(pair.cached, pair.cold, SLOW)
    hints = CacheHints(session_id="one")
    told = engine.answer(prompt, cache=hints)
    longer = [*prompt, *told.tokens, *words(f"{prompt}", 200)]
    answer = engine.ask(longer, cache=hints)
    step_until(engine, answer, RequestState.PREFILLING)
    while engine.warm.live(answer).prefilled < 200:
        engine.warm.step()
    committed = engine.warm.live(answer).prefilled
    cancel(engine, answer)
    engine.warm.run(answer)
    slots = engine.warm.loop.view().slots
    assert [(slot.session, slot.tokens) for slot in slots] == [("one", committed)]
    assert engine.answer(longer, cache=hints).finished.timings.cache_n == committed
    engine.warm.check()


@pytest.mark.parametrize("family", ["hybrid", "llama"])
def test_who_computes_nothing_leaves_the_conversation_as_it_was(
    make_pair: MakePair, prompt: list[int], family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = make_pair(family)
    engine = ComparedEngine(pair.cached, pair.cold, SLOW)
    hints = CacheHints(session_id="one")
    told = engine.answer(prompt, cache=hints)
    longer = [*prompt, *told.tokens, *words(f"{prompt}", 50)]
    before = engine.warm.loop.view().slots
    for _ in range(2):
        monkeypatch.setattr(engine.warm.loop._prefill, "unit", lambda: False)
        answer = engine.ask(longer, cache=hints)
        step_until(engine, answer, RequestState.PREFILLING)
        cancel(engine, answer)
        engine.warm.run(answer)
        monkeypatch.undo()
        engine.warm.check()
        assert engine.warm.loop.view().slots == before
    assert engine.answer(longer, cache=hints).finished.timings.cache_n == len(prompt) + len(told.tokens) - 1


def test_who_computes_nothing_and_has_lost_its_slot_keeps_the_conversation(
    make_pair: MakePair, prompt: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else's end has taken the slot of the state that was consumed: it goes to Host."""
    pair = make_pair("hybrid", device_state_slots=1)
    engine = ComparedEngine(pair.cached, pair.cold, SLOW)
    hints = CacheHints(session_id="one")
    told = engine.answer(prompt, cache=hints)
    longer = [*prompt, *told.tokens, *words(f"{prompt}", 50)]
    other = engine.ask(words(f"{prompt}", 30), 5)
    step_until(engine, other, RequestState.DECODING)
    monkeypatch.setattr(engine.warm.loop._prefill, "unit", lambda: False)
    answer = engine.ask(longer, cache=hints)
    step_until(engine, answer, RequestState.PREFILLING)
    engine.warm.run(other)
    assert engine.warm.program.statistics().used.image_slots_checkpoint == 1
    cancel(engine, answer)
    engine.warm.run()
    monkeypatch.undo()
    engine.warm.check()
    assert "one" in [slot.session for slot in engine.warm.loop.view().slots]
    assert engine.answer(longer, cache=hints).finished.timings.cache_n == len(prompt) + len(told.tokens) - 1
