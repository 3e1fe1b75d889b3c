"""A turn of many tool rounds of which a later message of the user changes the last ones only: their reasoning goes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.fixtures.seed import SEED
from tests.fixtures.stepped_engine import ComparedEngine
from tests.fixtures.token_chat import FIRST_CONTENT_ID, LAST_CONTENT_ID, ChatTokens, Message, render
from tests.python.engine.cached_models import MakePair

ROUNDS = 8
THOUGHT = 4


@pytest.mark.parametrize("first", [2, 10, 14])
def test_what_stays_of_the_turn_is_reused(make_pair: MakePair, first: int) -> None:
    """first: the message that is the first to change."""
    print(f"NINFER_TEST_SEED={SEED}")
    random = np.random.default_rng([SEED, first])
    pair = make_pair("hybrid")
    engine = ComparedEngine(pair.cached, pair.cold)

    def words(count: int) -> list[int]:
        return [int(one) for one in random.integers(FIRST_CONTENT_ID, LAST_CONTENT_ID, count)]

    def rendered(messages: list[Message]) -> ChatTokens:
        """With what the frontend tells of the open turn."""
        prompt = render(messages)
        starts = {start.message: start.frontier for start in prompt.boundaries.messages}
        return ChatTokens(prompt.ids, replace(prompt.boundaries, turn_rewrite=starts.get(first)))

    messages: list[Message] = [("system", words(60)), ("user", words(40))]
    for _ in range(ROUNDS):
        prompt = rendered(messages)
        answer = engine.answer(prompt.ids, 12, prompt.boundaries)
        messages += [("assistant", answer.tokens), ("tool", words(25))]
    kept = len(render(messages[:first]).ids)
    closed = [
        (role, content[THOUGHT:] if role == "assistant" and number >= first else content)
        for number, (role, content) in enumerate(messages)
    ]
    prompt = render([*closed, ("user", words(30))])
    reused = engine.answer(prompt.ids, 12, prompt.boundaries).finished.timings.cache_n
    assert kept - 16 <= reused <= kept
    engine.warm.check()
