"""Everything that can legally be reused is, and a warm answer is the cold one bit for bit: in all logits of every
sampled row, on both model families, in every storage. What is ideal comes from the prompts alone (D-33)."""

from __future__ import annotations

import numpy as np
import pytest

from ninfer.engine.events import Finished
from tests.fixtures.ideal_reuse import IdealReuse
from tests.fixtures.seed import SEED
from tests.fixtures.stepped_engine import ComparedEngine
from tests.fixtures.token_chat import FIRST_CONTENT_ID, LAST_CONTENT_ID, Message, render
from tests.python.engine.cached_models import STORAGES, MakePair

FAMILIES = ("hybrid", "llama")
EVERY = [(family, storage) for family in FAMILIES for storage in STORAGES]
ANSWER = 6


class Talk:
    """One engine, what its clients say, and what each answer must have reused."""

    def __init__(self, make_pair: MakePair, family: str, storage: str, node: str, **options: int) -> None:
        print(f"NINFER_TEST_SEED={SEED}")
        pair = make_pair(family, storage, **options)
        self.engine = ComparedEngine(pair.cached, pair.cold)
        self.ideal = IdealReuse(has_state=pair.has_state)
        self._random = np.random.default_rng([SEED, *node.encode()])

    def words(self, count: int) -> list[int]:
        return [int(one) for one in self._random.integers(FIRST_CONTENT_ID, LAST_CONTENT_ID, count)]

    def chat(self, messages: list[Message], count: int = ANSWER) -> list[int]:
        """The answer to a conversation, which reuses what it ideally can."""
        prompt = render(messages)
        answer = self.engine.answer(prompt.ids, count, prompt.boundaries)
        self.ideal.assert_reached(prompt.ids, prompt.boundaries, answer.finished.timings.cache_n)
        self.ideal.add(prompt.ids)
        self.last = answer.finished
        return answer.tokens

    def raw(self, prompt: list[int], count: int = ANSWER) -> Finished:
        answer = self.engine.answer(prompt, count)
        self.ideal.add(prompt)
        return answer.finished

    def turn(self, messages: list[Message], words: int = 40) -> list[Message]:
        """The conversation with a user's message and the answer to it."""
        asked = [*messages, ("user", self.words(words))]
        return [*asked, ("assistant", self.chat(asked))]

    last: Finished


@pytest.fixture(params=EVERY, ids=lambda case: "-".join(case))
def talk(request: pytest.FixtureRequest, make_pair: MakePair) -> Talk:
    return Talk(make_pair, *request.param, request.node.nodeid)


def test_a_conversation_goes_on_turn_by_turn(talk: Talk) -> None:
    messages: list[Message] = [("system", talk.words(150))]
    for _ in range(4):
        messages = talk.turn(messages)
    assert talk.last.timings.prompt_n <= 40 + 16
    talk.engine.warm.check()


def test_an_answer_is_made_again(talk: Talk) -> None:
    messages = talk.turn(talk.turn([("system", talk.words(100))]))
    for _ in range(3):
        talk.chat(messages[:-1])
        assert talk.last.timings.prompt_n <= 16


def test_the_last_user_message_is_edited(talk: Talk) -> None:
    messages = talk.turn(talk.turn([("system", talk.words(100))]))
    for _ in range(2):
        talk.turn(messages[:-2])


def test_the_first_user_message_is_edited(talk: Talk) -> None:
    messages = [("system", talk.words(100)), ("user", talk.words(90))]
    messages.append(("assistant", talk.chat(messages)))
    talk.turn(messages)
    talk.chat([messages[0], ("user", [*messages[1][1][:50], *talk.words(40)])])
    assert talk.last.timings.cache_n >= 100


def test_new_conversations_share_the_instructions(talk: Talk) -> None:
    system: Message = ("system", talk.words(300))
    for number in range(4):
        talk.turn([system])
        assert number == 0 or talk.last.timings.cache_n >= 300


def test_earlier_reasoning_is_left_out(talk: Talk) -> None:
    messages: list[Message] = [("system", talk.words(100))]
    for _ in range(4):
        messages = talk.turn(messages)
        role, content = messages[-1]
        messages[-1] = (role, content[ANSWER // 2 :])


def test_five_conversations_are_held_side_by_side(talk: Talk) -> None:
    talks: list[list[Message]] = [[("system", talk.words(80 + number))] for number in range(5)]
    for _ in range(3):
        talks = [talk.turn(messages) for messages in talks]


def test_sixty_tool_rounds_compute_one_round_each(talk: Talk) -> None:
    messages: list[Message] = [("system", talk.words(120)), ("user", talk.words(60))]
    added = len(render(messages).ids)
    for _ in range(60):
        answer = talk.chat(messages)
        assert talk.last.timings.prompt_n <= added + 16
        before = len(render(messages).ids)
        messages += [("assistant", answer), ("tool", talk.words(20))]
        added = len(render(messages).ids) - before
    talk.engine.warm.check()


def test_a_branch_is_left_and_found_again(talk: Talk) -> None:
    base = talk.turn(talk.turn([("system", talk.words(100))]))
    first = talk.turn(base)
    talk.turn(talk.turn(base[:-2]))  # the second message again, in other words, and on from there
    talk.turn(first)
    talk.chat(first[:-1])  # and its answer again


def test_eight_beginnings_take_turns(talk: Talk) -> None:
    systems: list[Message] = [("system", talk.words(200)) for _ in range(8)]
    for number in range(3):
        for system in systems:
            talk.turn([system])
            assert number == 0 or talk.last.timings.cache_n >= 200


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("length", [1, 2, 15, 16, 17, 18, 63, 64, 65, 66, 127, 128, 129, 200, 527, 528])
def test_a_raw_prompt_is_sent_twice(
    request: pytest.FixtureRequest, make_pair: MakePair, family: str, length: int
) -> None:
    talk = Talk(make_pair, family, "f32", request.node.nodeid)
    prompt = talk.words(length)
    talk.raw(prompt)
    # Up to 16 tokens are not worth a checkpoint of their own.
    assert talk.raw(prompt).timings.prompt_n <= (1 if length > 16 else length)
    talk.engine.warm.check()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_long_raw_prompt_computes_one_token(request: pytest.FixtureRequest, make_pair: MakePair, family: str) -> None:
    talk = Talk(make_pair, family, "bf16", request.node.nodeid)
    prompt = talk.words(1602)
    talk.raw(prompt)
    assert [talk.raw(prompt).timings.prompt_n for _ in range(2)] == [1, 1]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_client_that_left_finds_what_was_computed(talk: Talk, share: float) -> None:
    """Up to the last unit that was committed."""
    prompt = render([("system", talk.words(900)), ("user", talk.words(300))])
    warm = talk.engine.warm
    answer = talk.engine.ask(prompt.ids, ANSWER, prompt.boundaries)
    while not warm.parts.scheduler.staged or warm.live(answer).prefilled < share * len(prompt.ids):
        warm.step()
    committed = warm.live(answer).prefilled
    warm.service.cancel(answer.request_id, "gone")
    warm.run(answer)
    again = talk.engine.answer(prompt.ids, ANSWER, prompt.boundaries).finished
    assert again.timings.cache_n == committed
    warm.check()


def test_a_tiny_request_in_the_middle_of_a_tool_turn_costs_the_turn_nothing(talk: Talk) -> None:
    messages: list[Message] = [("system", talk.words(200)), ("user", talk.words(60))]
    for _ in range(4):
        answer = talk.chat(messages)
        talk.chat([("user", talk.words(8))])
        messages += [("assistant", answer), ("tool", talk.words(20))]
        talk.chat(messages)
        assert talk.last.timings.prompt_n <= len(answer) + 20 + 6 + 16
