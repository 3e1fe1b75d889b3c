"""The ideal of D-33 behind the chat templates of hybrid models, which drop reasoning, look into answers and fold tool
results into the user's turn, each in its own way. The demo model speaks; clients send back what they parsed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ninfer.engine.loaded_model import LoadedModel
from tests.fixtures.llama_cpp_package import llama_cpp_models
from tests.fixtures.seed import SEED
from tests.fixtures.text_talk import WEATHER, Client, Message, TextTalk
from tests.python.engine.chatting_models import ChattingModels

# All open a message with the token that the demo model's own template has for that.
TEMPLATES = ("Qwen3.5-4B", "Qwen-Qwen3-0.6B", "Qwen3-Coder", "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "LFM2.5-8B-A1B")
CLIENTS = {"parsed": Client(), "as text": Client(keeps_reasoning=False, parses_calls=False)}


@pytest.fixture(scope="module", params=TEMPLATES)
def template(request: pytest.FixtureRequest) -> Path:
    return llama_cpp_models() / "templates" / f"{request.param}.jinja"


@pytest.fixture(scope="module")
def cold(chatting_models: ChattingModels, template: Path) -> LoadedModel:
    return chatting_models.cached("hybrid", chat_template=template, context_cache=False)


@pytest.fixture(params=CLIENTS)
def talk(
    request: pytest.FixtureRequest, chatting_models: ChattingModels, template: Path, cold: LoadedModel
) -> TextTalk:
    print(f"NINFER_TEST_SEED={SEED}")
    model = chatting_models.cached("hybrid", chat_template=template)
    return TextTalk(model, cold, f"{SEED} {request.node.nodeid}", CLIENTS[request.param], max_tokens=30)


def test_turns_edits_and_branches(talk: TextTalk) -> None:
    begun: list[Message] = [{"role": "system", "content": talk.text(30)}]
    messages = talk.turn(talk.turn(talk.turn(begun)))
    talk.chat(messages[:-1])
    branch = talk.turn(talk.turn(messages[:-2]))
    talk.turn(messages)
    talk.chat(branch[:-1])
    talk.turn([*begun, {**messages[1], "content": talk.text(20)}])
    talk.turn(begun)
    talk.engine.warm.check()


def test_tool_rounds(talk: TextTalk) -> None:
    messages: list[Message] = [{"role": "system", "content": talk.text(20)}]
    messages = [*talk.turn(messages, tools=[WEATHER]), {"role": "user", "content": "what is the weather in Oslo?"}]
    for number in range(6):
        answer = talk.chat(messages, tools=[WEATHER])
        messages = [*messages, answer, {"role": "tool", "tool_call_id": "call0", "content": talk.text(5 * number)}]
    talk.turn(talk.turn(messages, tools=[WEATHER]), tools=[WEATHER])
    talk.engine.warm.check()
