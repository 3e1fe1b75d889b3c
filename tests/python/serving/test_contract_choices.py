"""Choices that the interface makes once: prompts without tokens, special tokens, tools, prefixes, other web pages."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from ninfer.frontend.chat_template import ChatTemplate
from ninfer.frontend.template_source import TemplateSource
from ninfer.serving.app import create_app
from ninfer.serving.served_model import ServedModel
from ninfer.serving.serving_options import ServingOptions
from tests.python.serving.scripted_engine import ScriptedEngine, answer_events

HELLO = [{"role": "user", "content": "hello."}]
TOOL = {"type": "function", "function": {"name": "clock", "parameters": {"type": "object"}}}
POSTS: dict[str, dict[str, Any]] = {
    "/chat/completions": {"messages": HELLO},
    "/completions": {"prompt": "hello"},
    "/completion": {"prompt": "hello"},
    "/tokenize": {"content": "hello"},
    "/detokenize": {"tokens": [40]},
    "/apply-template": {"messages": HELLO},
}


@pytest.fixture(autouse=True)
def _talking(engine: ScriptedEngine, model: ServedModel) -> None:
    engine.answer = answer_events(model.frontend.tokenizer, "hello")


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize("prefix", ["", "/v1"])
def test_every_path_answers_with_and_without_the_prefix(client: TestClient, path: str, prefix: str) -> None:
    assert client.post(prefix + path, json=POSTS[path]).status_code == 200


@pytest.mark.parametrize("path", ["/v1/completions", "/completion"])
@pytest.mark.parametrize("body", [{}, {"prompt": None}, {"prompt": ""}, {"prompt": []}])
def test_an_empty_prompt_is_refused_by_a_model_without_a_token_to_begin_with(
    client: TestClient, engine: ScriptedEngine, path: str, body: dict[str, Any]
) -> None:
    response = client.post(path, json=body)
    assert (response.status_code, response.json()["error"]["param"]) == (400, "prompt")
    assert not engine.requests


@pytest.mark.parametrize("path", ["/v1/completions", "/completion"])
@pytest.mark.parametrize("body", [{"prompt": ""}, {"prompt": []}])
def test_an_empty_prompt_is_the_token_that_begins_a_text(
    engine: ScriptedEngine, model: ServedModel, options: ServingOptions, path: str, body: dict[str, Any]
) -> None:
    tokenizer = model.frontend.tokenizer
    beginning: Any = SimpleNamespace(
        bos_id=7,
        pad_id=None,
        encode=tokenizer.encode,
        fewest_tokens=tokenizer.fewest_tokens,
        has_token=tokenizer.has_token,
        eos_ids=tokenizer.eos_ids,
    )
    with_bos = replace(model, frontend=replace(model.frontend, tokenizer=beginning))
    with TestClient(create_app(engine, engine.router, with_bos, options)) as client:
        assert client.post(path, json=body).status_code == 200
    assert [request.prompt for request in engine.requests.values()] == [[7]]


@pytest.mark.parametrize("parsed", [False, True])
def test_special_tokens_in_messages_are_text_unless_the_server_is_told_otherwise(
    engine: ScriptedEngine, model: ServedModel, options: ServingOptions, parsed: bool
) -> None:
    tokenizer = model.frontend.tokenizer
    chosen = replace(options, parse_special_in_content=parsed)
    with TestClient(create_app(engine, engine.router, model, chosen)) as client:
        for content in ("hello.", f"hello.{tokenizer.special_texts[0]}"):
            messages = [{"role": "user", "content": content}]
            assert client.post("/v1/chat/completions", json={"messages": messages}).status_code == 200
    plain, special = (
        sum(token in tokenizer.special_ids for token in request.prompt) for request in engine.requests.values()
    )
    assert special - plain == int(parsed)


def test_tools_that_a_template_ignores_are_refused_unless_they_do_not_count(
    engine: ScriptedEngine, model: ServedModel, options: ServingOptions
) -> None:
    template = ChatTemplate(TemplateSource("inline", "{{ messages[0].content }}"), {}, datetime.now)
    deaf = replace(model, frontend=replace(model.frontend, template=template))
    with TestClient(create_app(engine, engine.router, deaf, options)) as client:
        refused = client.post("/v1/chat/completions", json={"messages": HELLO, "tools": [TOOL]})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "tools")
        for harmless in ({"tools": []}, {"tools": None}, {"tools": [TOOL], "tool_choice": "none"}):
            response = client.post("/v1/chat/completions", json={"messages": HELLO, **harmless})
            assert response.status_code == 200, harmless
