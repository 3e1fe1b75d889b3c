"""What clients do, in text, through the demo model's chat template: the ideal of D-33, and warm = cold in all logits.

The hybrid speaks for itself; a random Llama behind the same template says what it happens to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ninfer.engine.request import CacheHints
from tests.fixtures.seed import SEED
from tests.fixtures.text_talk import WEATHER, Client, Message, TextTalk, text_of
from tests.python.engine.chatting_models import FAMILIES, ChattingModels

CLIENTS = {
    "keeps": Client(keeps_reasoning=True, parses_calls=True),
    "strips": Client(keeps_reasoning=False, parses_calls=True),
    "as text": Client(keeps_reasoning=False, parses_calls=False),
}
MakeTalk = Callable[..., TextTalk]


@pytest.fixture
def make_talk(request: pytest.FixtureRequest, chatting_models: ChattingModels) -> Iterator[MakeTalk]:
    print(f"NINFER_TEST_SEED={SEED}")
    made: list[TextTalk] = []

    def make(family: str = "hybrid", client: str = "keeps", **more: Any) -> TextTalk:
        models = chatting_models.cached(family), chatting_models.cold(family)
        made.append(TextTalk(*models, f"{SEED} {request.node.nodeid}", CLIENTS[client], **more))
        return made[-1]

    yield make
    for talk in made:
        print(f"missing at most {talk.worst}")
        talk.engine.warm.check()


@pytest.fixture(params=["hybrid-keeps", "hybrid-strips", "llama-keeps"])
def talk(request: pytest.FixtureRequest, make_talk: MakeTalk) -> TextTalk:
    family, _, client = request.param.partition("-")
    return make_talk(family, client)


def system(talk: TextTalk, words: int) -> Message:
    return {"role": "system", "content": talk.text(words)}


def test_a_conversation_goes_on(talk: TextTalk) -> None:
    messages = [system(talk, 60)]
    for _ in range(6):
        messages = talk.turn(messages)


def test_an_answer_is_made_again(talk: TextTalk) -> None:
    messages = talk.turn(talk.turn([system(talk, 40)]))
    for _ in range(2):
        talk.chat(messages[:-1])
    talk.turn(messages)


def test_the_last_user_message_is_edited(talk: TextTalk) -> None:
    messages = talk.turn(talk.turn(talk.turn([system(talk, 40)])))
    for _ in range(2):
        talk.turn(messages[:-2])
    talk.turn(messages)


def test_the_first_user_message_is_edited(talk: TextTalk) -> None:
    begun = [system(talk, 40)]
    messages = talk.turn(talk.turn(talk.turn(begun, words=60)))
    [instructions, first, *_] = messages
    edited = [instructions, {**first, "content": f"{first['content'][:-20]} {talk.text(10)}"}]
    talk.chat(edited)
    talk.chat([*edited, *messages[2:-1]])


def test_new_conversations_share_the_instructions(talk: TextTalk) -> None:
    instructions = system(talk, 120)
    for _ in range(4):
        talk.turn(talk.turn([instructions]))


def test_new_conversations_share_the_tools(talk: TextTalk) -> None:
    for _ in range(3):
        talk.turn(talk.turn([system(talk, 80)], tools=[WEATHER]), tools=[WEATHER])


def test_five_conversations_take_turns(talk: TextTalk) -> None:
    talks = [[system(talk, 30 + number)] for number in range(5)]
    for _ in range(3):
        talks = [talk.turn(messages) for messages in talks]


def test_five_conversations_ask_at_once(talk: TextTalk) -> None:
    """One more than there are lanes."""
    talks = [[system(talk, 30 + number)] for number in range(5)]
    for _ in range(3):
        asked = [[*messages, {"role": "user", "content": talk.text(20)}] for messages in talks]
        prompts = [talk.encoded(messages) for messages in asked]
        answers = [talk.begin(prompt) for prompt in prompts]
        talk.engine.warm.run()
        for prompt, answer in zip(prompts, answers, strict=True):
            talk.note(prompt, answer.finished.timings.cache_n)
        heard = [talk.heard(prompt, answer) for prompt, answer in zip(prompts, answers, strict=True)]
        talks = [[*messages, message] for messages, message in zip(asked, heard, strict=True)]
    assert talk.engine.witness.wrong == []


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_tool_rounds_compute_one_round_each(make_talk: MakeTalk, family: str, client: str) -> None:
    talk = make_talk(family, client, max_tokens=24)
    messages = [system(talk, 20), {"role": "user", "content": "what is the weather in Oslo?"}]
    round_tokens = 1 << 20
    # Sixty of those in which the least is the same again; what they compute cold grows with their square.
    for number in range(60 if client == "strips" else 20):
        before = len(talk.encoded(messages, [WEATHER]).token_ids)
        answer = talk.chat(messages, tools=[WEATHER])
        assert talk.last.timings.prompt_n <= round_tokens + 16
        messages = [*messages, answer, {"role": "tool", "tool_call_id": "call0", "content": talk.text(number % 9)}]
        round_tokens = len(talk.encoded(messages, [WEATHER]).token_ids) - before
    talk.turn(messages, tools=[WEATHER])


def test_a_branch_is_left_and_found_again(talk: TextTalk) -> None:
    base = talk.turn(talk.turn([system(talk, 40)]))
    first = talk.turn(talk.turn(base))
    talk.turn(talk.turn(base[:-2]))
    talk.turn(first)
    talk.chat(first[:-1])


def test_eight_instructions_take_turns(talk: TextTalk) -> None:
    instructions = [system(talk, 70) for _ in range(8)]
    for _ in range(3):
        for one in instructions:
            talk.turn([one])


def test_a_small_question_inside_a_tool_turn_costs_it_nothing(talk: TextTalk) -> None:
    messages = [system(talk, 40), {"role": "user", "content": "what is the weather in Lima?"}]
    for _ in range(5):
        answer = talk.chat(messages, tools=[WEATHER])
        talk.chat([{"role": "user", "content": talk.text(3)}])
        messages = [*messages, answer, {"role": "tool", "tool_call_id": "call0", "content": talk.text(5)}]


@pytest.mark.parametrize("percent", [10, 50, 90])
def test_who_left_finds_what_was_computed(talk: TextTalk, percent: int) -> None:
    talk.turn([system(talk, 40)])
    prompt = talk.encoded([system(talk, 900), {"role": "user", "content": talk.text(500)}])
    warm = talk.engine.warm
    left = talk.begin(prompt)
    warm.step()
    while warm.live(left).prefilled * 100 < percent * len(prompt.token_ids):
        warm.step()
    assert warm.parts.scheduler.staged, "it is still in its prefill"
    committed = warm.live(left).prefilled
    warm.service.cancel(left.request_id, "gone")
    warm.run(left)
    again = talk.computed(prompt).finished
    assert again.timings.cache_n == committed


def test_nobody_hears_what_was_told_behind_another_salt(make_talk: MakeTalk) -> None:
    """Two clients at once, on two lanes, who tell the same model different words."""
    talk = make_talk()
    instructions = system(talk, 60)
    told = {"one": "repeat: the word is apple.", "two": "repeat: the word is river."}
    prompts = {salt: talk.encoded([instructions, {"role": "user", "content": text}]) for salt, text in told.items()}
    for number in range(3):
        answers = {salt: talk.begin(prompt, CacheHints(salt=salt)) for salt, prompt in prompts.items()}
        talk.engine.warm.run()
        for salt, answer in answers.items():
            assert ("river" if salt == "one" else "apple") not in text_of(answer)
            assert number == 0 or answer.finished.timings.prompt_n <= 16
    assert len(talk.engine.warm.loop.view().slots) >= 2
    assert talk.engine.witness.wrong == []
