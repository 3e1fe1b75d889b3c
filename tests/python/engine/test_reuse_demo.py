"""Conversations with the packaged demo model, through its own template: what it says is the same, and soon there."""

from __future__ import annotations

from datetime import datetime

import pytest

from ninfer.config.engine_options import EngineOptions
from ninfer.demo import HYBRID_DIRECTORY
from ninfer.engine.engine import load_model
from ninfer.engine.events import TokenEvent
from ninfer.engine.loaded_model import LoadedModel
from ninfer.engine.request import CacheHints, EngineRequest
from ninfer.engine.sampling_params import SamplingParams
from ninfer.frontend.chat_prompt import ChatPrompt
from tests.fixtures.ideal_reuse import IdealReuse
from tests.fixtures.stepped_engine import Answer, ComparedEngine

SYSTEM = {"role": "system", "content": "you are a helpful assistant. " * 12}
MOST_TOKENS = 40


class DemoTalk:
    """One cached engine beside a cold one."""

    def __init__(self) -> None:
        self.model = load(context_cache=True)
        self.engine = ComparedEngine(self.model, load(context_cache=False))
        self.ideal = IdealReuse(has_state=True)

    def chat(self, messages: list[dict[str, str]]) -> str:
        """The text of the answer, which reuses what it ideally can."""
        chat = self.model.frontend.encode_chat(ChatPrompt(messages))
        params = SamplingParams(max_tokens=MOST_TOKENS, temperature=0.0)
        warm, cold = Answer(), Answer()
        request = EngineRequest(chat.token_ids, params, boundaries=chat.boundaries)
        self.engine.cold.service.submit(request, cold.events.extend)
        self.engine.cold.run()
        self.engine.warm.service.submit(request, warm.events.extend)
        self.engine.warm.run()
        assert self.engine.witness.wrong == [] and warm.tokens == cold.tokens
        self.last = warm.finished
        self.ideal.assert_reached(chat.token_ids, chat.boundaries, self.last.timings.cache_n)
        self.ideal.add(chat.token_ids)
        return "".join(event.text for event in warm.events if isinstance(event, TokenEvent))

    def ask(self, messages: list[dict[str, str]], salt: str) -> Answer:
        """Queued, with a salt; only the logits are compared."""
        chat = self.model.frontend.encode_chat(ChatPrompt(messages))
        hints = CacheHints(salt=salt)
        return self.engine.ask(chat.token_ids, MOST_TOKENS, chat.boundaries, cache=hints)

    def turn(self, messages: list[dict[str, str]], content: str) -> list[dict[str, str]]:
        asked = [*messages, {"role": "user", "content": content}]
        answer = self.chat(asked)
        return [*asked, {"role": "assistant", "content": answer}]


def load(context_cache: bool) -> LoadedModel:
    options = EngineOptions(
        threads=1, max_context=4096, prefill_chunk=256, host_cache_mib=64, context_cache=context_cache
    )
    return load_model(HYBRID_DIRECTORY, options, datetime.now)


@pytest.fixture
def talk() -> DemoTalk:
    return DemoTalk()


def test_a_conversation_is_reused_turn_by_turn_and_its_answers_are_made_again(talk: DemoTalk) -> None:
    messages: list[dict[str, str]] = [SYSTEM]
    for content in ("hello.", "count to five.", "what is two plus three?"):
        messages = talk.turn(messages, content)
    talk.chat(messages[:-1])
    assert talk.last.timings.prompt_n <= 16
    talk.turn(messages[:-2], "count to seven.")
    talk.turn(messages, "hello again.")
    talk.engine.warm.check()


def test_new_conversations_share_their_instructions(talk: DemoTalk) -> None:
    instructions = len(
        talk.model.frontend.encode_chat(ChatPrompt([SYSTEM, {"role": "user", "content": "x"}])).token_ids
    )
    for number, content in enumerate(("hello.", "count to five.", "what is two plus three?")):
        talk.turn([SYSTEM], content)
        assert number == 0 or talk.last.timings.cache_n > instructions - 32


def test_nobody_hears_what_was_told_behind_another_salt(talk: DemoTalk) -> None:
    """Two clients at once, on two lanes, who tell the same model different words."""
    told = {"one": "repeat: the word is apple.", "two": "repeat: the word is river."}
    for _ in range(3):
        answers = {salt: talk.ask([SYSTEM, {"role": "user", "content": text}], salt) for salt, text in told.items()}
        talk.engine.warm.run()
        for salt, answer in answers.items():
            foreign = "river" if salt == "one" else "apple"
            assert foreign not in "".join(event.text for event in answer.events if isinstance(event, TokenEvent))
    assert [answer.finished.timings.prompt_n <= 16 for answer in answers.values()] == [True, True]
    assert len(talk.engine.warm.loop.view().slots) >= 2
    assert talk.engine.witness.wrong == []
