"""The demo model's recorded conversations: prompts have the recorded length, answers the recorded meaning."""

from __future__ import annotations

import datetime as datetime_module
import json
from typing import Any

import pytest

from ninfer.demo import HYBRID_DIRECTORY
from ninfer.frontend.chat_encoder import encode_chat
from ninfer.frontend.chat_prompt import ChatPrompt
from ninfer.frontend.chat_template import ChatTemplate
from ninfer.frontend.detokenizer import Detokenizer
from ninfer.frontend.reasoning_parser import ReasoningDelta, ReasoningParser, prompt_opens_reasoning
from ninfer.frontend.template_source import template_of_hf_directory
from ninfer.frontend.tokenizer import Tokenizer

CONVERSATIONS = json.loads((HYBRID_DIRECTORY / "expected.json").read_text(encoding="utf-8"))
STEPS = [
    pytest.param(conversation, step, id=f"{conversation['name']}-{number}")
    for conversation in CONVERSATIONS
    for number, step in enumerate(conversation["steps"])
]


@pytest.fixture(scope="module")
def template(demo_tokenizer: Tokenizer) -> ChatTemplate:
    source = template_of_hf_directory(HYBRID_DIRECTORY)
    assert source is not None
    return ChatTemplate(source, demo_tokenizer.named_tokens, datetime_module.datetime.now)


@pytest.mark.parametrize(("conversation", "step"), STEPS)
def test_prompt_and_answer(
    template: ChatTemplate, demo_tokenizer: Tokenizer, conversation: dict[str, Any], step: dict[str, Any]
) -> None:
    kwargs = {"enable_thinking": conversation["enable_thinking"]}
    encoded = encode_chat(
        template, demo_tokenizer, ChatPrompt(step["messages"], conversation["tools"], template_kwargs=kwargs)
    )
    assert len(encoded.token_ids) == step["prompt_tokens"]
    assert step["token_ids"][-1] in demo_tokenizer.eos_ids
    detokenizer = Detokenizer(demo_tokenizer)
    parser = ReasoningParser(opened=prompt_opens_reasoning(encoded.text))
    parts = [parser.push(detokenizer.push(token_id)) for token_id in step["token_ids"][:-1]]
    answer = sum(parts, ReasoningDelta()) + parser.push(detokenizer.flush()) + parser.flush()
    assert (answer.reasoning or None) == step["reasoning"]
    content, call, _ = answer.content.partition("<tool_call>")
    assert bool(call) == bool(step.get("tool_calls"))
    assert (content.rstrip("\n") or None) == (step["content"] or None)
