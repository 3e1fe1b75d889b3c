"""In which order conversations and shared prefixes give way to what a request leaves behind."""

from __future__ import annotations

import pytest

from ninfer.frontend.prompt_boundaries import PromptBoundaries
from ninfer.resources.divergence import AdmittedPrompt
from ninfer.resources.evidence import Evidence
from ninfer.resources.reuse_key import ReuseKey
from ninfer.resources.reuse_report import ReuseReason
from tests.fixtures.fake_contexts import FakePrompt
from tests.python.resources.played_engine import PlayedEngine

TEXT = list(range(300))


@pytest.fixture
def engine() -> PlayedEngine:
    return PlayedEngine()


def shared(engine: PlayedEngine, first: int, evidence: Evidence = Evidence.ENGINE_STRUCTURAL) -> int:
    """The owner of a shared prefix that is all that its request has left."""
    request = engine.begin([first] * 100)
    handle = engine.capture_shared(request, 50, evidence)
    assert handle is not None
    engine.discard(request)
    return engine.contexts.checkpoint(handle).owner


def test_what_is_worth_little_goes_first_and_of_that_the_oldest(engine: PlayedEngine) -> None:
    old_shared = shared(engine, 1001)
    live = engine.keep(TEXT[:100], ReuseKey(session="live"))
    engine.keep(TEXT[100:200])
    recent = engine.finish_owner(engine.begin_best(TEXT[100:250]))
    new_shared = shared(engine, 1002)
    disposable = [engine.keep([one] * 60) for one in (1003, 1004)]
    claim = engine.begin([1005] * 50).claim
    assert engine.manager.memory_victims(claim) == [*disposable, old_shared, new_shared, recent, live]
    assert engine.manager.shared_victims(claim) == [old_shared, new_shared]


def test_a_use_makes_a_shared_prefix_young_again(engine: PlayedEngine) -> None:
    first, second = shared(engine, 1001), shared(engine, 1002)
    reader = engine.begin_best([1001] * 60)
    claim = engine.begin([1003] * 50).claim
    assert engine.manager.memory_victims(claim) == [second], "nobody takes what somebody reads"
    engine.discard(reader)
    assert engine.manager.memory_victims(claim) == [second, first]


def test_declared_ones_give_way_to_no_capture_while_they_have_credit(engine: PlayedEngine) -> None:
    """And to the end of a request after what may be used less than once, but before a live session."""
    live = engine.keep(TEXT[:100], ReuseKey(session="live"))
    engine.keep(TEXT[100:200])
    recent = engine.finish_owner(engine.begin_best(TEXT[100:250]))
    declared = shared(engine, 1001, Evidence.EXPLICIT_BOUNDARY)
    claim = engine.begin([1002] * 50).claim
    assert engine.manager.memory_victims(claim) == [recent, declared, live]
    assert engine.manager.shared_victims(claim) == engine.manager.cheap_victims(claim) == []
    for _ in range(32):
        engine.discard(engine.begin([1003] * 50))
    assert engine.manager.memory_victims(claim) == [declared, recent, live]
    assert engine.manager.shared_victims(claim) == engine.manager.cheap_victims(claim) == [declared]


def test_what_the_request_lies_behind_goes_last(engine: PlayedEngine) -> None:
    live = engine.keep(TEXT[:100], ReuseKey(session="live"))
    other = shared(engine, 1001)
    request = engine.begin([1002] * 100)
    handle = engine.capture_shared(request, 50)
    assert handle is not None
    made = engine.contexts.checkpoint(handle).owner
    assert engine.manager.memory_victims(request.claim) == [other, live, made]
    assert engine.manager.shared_victims(request.claim) == [other]


def test_an_end_without_room_is_remembered(engine: PlayedEngine) -> None:
    prompt = FakePrompt(tuple(TEXT[:100]))
    engine.manager.note_unkept(prompt, 99)
    engine.manager.note_unkept(prompt, 0)

    def reason(tokens: list[int]) -> ReuseReason | None:
        asked = FakePrompt(tuple(tokens))
        return engine.manager.divergence(AdmittedPrompt(asked, ReuseKey(), PromptBoundaries(), 0)).reason

    assert reason(TEXT[:120]) is ReuseReason.EVICTED
    assert reason(TEXT[:100]) is ReuseReason.EVICTED
    assert reason(TEXT[:98]) is ReuseReason.NO_MATCH
