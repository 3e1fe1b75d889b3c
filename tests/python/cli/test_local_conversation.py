"""Conversations with a model in the same process: what they reuse, and what a turn that was stopped leaves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ninfer.cli.local_conversation import LocalConversation
from ninfer.cli.local_engine import LocalEngine
from ninfer.cli.turn_cost import TurnCost
from ninfer.config.engine_options import EngineOptions
from ninfer.demo import HYBRID_DIRECTORY
from ninfer.errors import EngineFailedError, RequestError
from ninfer.frontend.reasoning_parser import ReasoningDelta

SYSTEM = {"role": "system", "content": "you answer in few words and never guess what was not said before."}
ENDLESS = {"max_tokens": 3000, "temperature": 10_000.0, "seed": 2}


@pytest.fixture(scope="module")
def engine() -> Iterator[LocalEngine]:
    options = EngineOptions(threads=1, max_context=4096, prefill_chunk=256, host_cache_mib=64)
    with LocalEngine.load(HYBRID_DIRECTORY, options) as engine:
        yield engine


def said(conversation: LocalConversation, text: str) -> str:
    return sum(conversation.say(text), ReasoningDelta()).content


def cost(conversation: LocalConversation) -> TurnCost:
    assert conversation.last is not None
    return conversation.last


def test_turns_go_on_from_what_was_computed(engine: LocalEngine) -> None:
    conversation = LocalConversation(engine, beginning=[SYSTEM], sampling={"temperature": 0.0})
    said(conversation, "my name is Karin.")
    first = cost(conversation)
    assert said(conversation, "what is my name?") == "your name is Karin."
    second = cost(conversation)
    assert first.cached == 0 and first.computed == first.prompt_tokens
    assert second.cached > 16 and second.cached + second.computed == second.prompt_tokens
    assert f"cached {second.cached} (device, shared_stable_prefix" in second.line()
    conversation.clear()
    assert said(conversation, "my name is Karin.")
    assert cost(conversation).computed <= 16


def test_a_stopped_turn_leaves_no_trace_but_what_it_computed(engine: LocalEngine) -> None:
    conversation = LocalConversation(engine, sampling=ENDLESS)
    question = "what is 12 plus 30? " * 20
    before = list(conversation.messages)
    answer = conversation.say(question)
    next(answer)
    answer.close()
    assert conversation.messages == before and conversation.last is None
    conversation.sampling = {"max_tokens": 4}
    said(conversation, question)
    assert cost(conversation).computed <= 16


def test_a_turn_may_be_stopped_at_any_time_and_any_number_of_times(engine: LocalEngine) -> None:
    """Nobody waits for those that were left, and all of them are gone in the end."""
    conversation = LocalConversation(engine, sampling=ENDLESS)
    for number in range(20):
        answer = conversation.say(f"hello {number}.")
        next(answer)
        answer.close()
    conversation.sampling = {"max_tokens": 4}
    said(conversation, "hello.")
    view = engine._service.snapshot()
    assert (view.running, view.lanes_open) == (0, 0)


def test_one_whose_id_was_lost_is_left_too(engine: LocalEngine) -> None:
    """An interrupt may come between a request's submission and its first event."""
    conversation = LocalConversation(engine, sampling=ENDLESS)
    chat = conversation._encoded([{"role": "user", "content": "hello."}])
    engine._service.submit(engine.request(chat, ENDLESS), lambda events: None)
    conversation.sampling = {"max_tokens": 4}
    said(conversation, "hello.")
    assert [request for request in engine._service.snapshot().requests if request.max_tokens > 4] == []


def test_what_cannot_be_answered_is_refused_and_forgotten(engine: LocalEngine) -> None:
    conversation = LocalConversation(engine)
    with pytest.raises(RequestError, match="the context holds 4096"):
        said(conversation, "hello. " * 10_000)
    assert conversation.messages == []
    with pytest.raises(RequestError, match="max_tokens"):
        LocalConversation(engine, sampling={"max_tokens": 0}).check()


def test_without_the_cache_nothing_is_kept() -> None:
    options = EngineOptions(threads=1, max_context=512, prefill_chunk=256, context_cache=False)
    with LocalEngine.load(HYBRID_DIRECTORY, options) as engine:
        conversation = LocalConversation(engine, beginning=[SYSTEM])
        for _ in range(2):
            said(conversation, "hello.")
            assert (cost(conversation).cached, cost(conversation).shortfall) == (0, "disabled")
    with pytest.raises(EngineFailedError):
        said(conversation, "hello.")
