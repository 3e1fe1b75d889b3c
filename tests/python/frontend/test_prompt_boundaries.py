"""Boundaries where their place is known: both demo models' templates, and templates that make it hard."""

from __future__ import annotations

import datetime as datetime_module
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer.demo import HYBRID_DIRECTORY
from ninfer.frontend.chat_encoder import EncodedChat, encode_chat
from ninfer.frontend.chat_prompt import ChatPrompt, PromptMarker
from ninfer.frontend.chat_template import ChatTemplate
from ninfer.frontend.prompt_boundaries import RAW_PROMPT, MessageBoundary, PromptBoundaries
from ninfer.frontend.template_source import TemplateSource, template_of_gguf, template_of_hf_directory
from ninfer.frontend.tokenizer import Tokenizer
from tests.fixtures.gguf_metadata import gguf_metadata
from tests.fixtures.smollm2_file import smollm2_gguf
from tests.python.frontend.conversations import ANSWERED, ASKED, CALLED, SYSTEM, WEATHER

NOW = datetime_module.datetime(2026, 7, 5)
Messages = Sequence[Mapping[str, Any]]
TOKENIZER = Tokenizer.from_hf_directory(HYBRID_DIRECTORY)
CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
# Without any control token.
PLAIN = (
    "{% for m in messages %}{{ m.role + ': ' + m.content + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


def _template(source: str) -> ChatTemplate:
    return ChatTemplate(TemplateSource("inline", source), TOKENIZER.named_tokens, lambda: NOW)


def _demo() -> ChatTemplate:
    source = template_of_hf_directory(HYBRID_DIRECTORY)
    assert source is not None
    return ChatTemplate(source, TOKENIZER.named_tokens, lambda: NOW)


DEMO = _demo()
WITHOUT_CONTROL = _template(PLAIN)


def _says(role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


TURNS = [SYSTEM, _says("user", "one"), _says("assistant", "two"), _says("user", "three")]


def _encoded(template: ChatTemplate, messages: Messages, **more: Any) -> EncodedChat:
    return encode_chat(template, TOKENIZER, ChatPrompt(messages, **more))


def _before(encoded: EncodedChat, frontier: int | None, tokenizer: Tokenizer = TOKENIZER) -> str:
    assert frontier is not None, encoded.boundaries
    return tokenizer.decode(encoded.token_ids[:frontier], skip_special=False)


def _begins(encoded: EncodedChat, tokenizer: Tokenizer = TOKENIZER) -> dict[int, str]:
    return {b.message: _before(encoded, b.frontier, tokenizer) for b in encoded.boundaries.messages}


@pytest.mark.parametrize("tools", [None, [WEATHER]])
def test_every_message_of_the_demo_begins_where_the_template_ends_those_before(tools: list[Any] | None) -> None:
    encoded = _encoded(DEMO, TURNS, tools=tools)
    beginnings = {
        index: DEMO.render_at(NOW, ChatPrompt(TURNS[:index], tools, add_generation_prompt=False)) for index in (1, 2, 3)
    }
    # Only in the beginning is the second turn the open one, which shows that nothing was thought.
    beginnings[3] = beginnings[3].replace("<think>\n\n</think>\n\n", "")
    assert _begins(encoded) == beginnings
    whole = DEMO.render_at(NOW, ChatPrompt(TURNS, tools, add_generation_prompt=False))
    assert _before(encoded, encoded.boundaries.turn_closure) == whole
    assert _before(encoded, encoded.boundaries.response_replay) == whole
    assert _before(encoded, encoded.boundaries.leading_end) == beginnings[1]


def test_every_message_of_smollm_begins_at_its_control_token(smollm_tokenizer: Tokenizer) -> None:
    source = template_of_gguf(gguf_metadata(smollm2_gguf()), smollm2_gguf())
    assert source is not None
    template = ChatTemplate(source, smollm_tokenizer.named_tokens, lambda: NOW)
    encoded = encode_chat(template, smollm_tokenizer, ChatPrompt(TURNS))
    starts = [at for at in range(1, len(encoded.text)) if encoded.text.startswith("<|im_start|>", at)]
    texts = [encoded.text[:at] for at in starts]
    assert _begins(encoded, smollm_tokenizer) == dict(enumerate(texts[:3], 1))
    boundaries = encoded.boundaries
    assert _before(encoded, boundaries.response_replay, smollm_tokenizer) == texts[3]
    assert (boundaries.turn_closure, boundaries.tools_end) == (boundaries.response_replay, None)
    assert _before(encoded, boundaries.leading_end, smollm_tokenizer) == texts[0]


def test_a_default_system_prompt_is_a_leading_block(smollm_tokenizer: Tokenizer) -> None:
    source = template_of_gguf(gguf_metadata(smollm2_gguf()), smollm2_gguf())
    assert source is not None
    template = ChatTemplate(source, smollm_tokenizer.named_tokens, lambda: NOW)
    encoded = encode_chat(template, smollm_tokenizer, ChatPrompt([_says("user", "hi")]))
    before = _before(encoded, encoded.boundaries.leading_end, smollm_tokenizer)
    assert before.endswith("<|im_end|>\n")
    assert encoded.text.startswith("<|im_start|>user\nhi", len(before))
    assert _begins(encoded, smollm_tokenizer) == {0: before}


def test_a_conversation_without_leading_messages_has_no_leading_end() -> None:
    assert _encoded(DEMO, TURNS[1:]).boundaries.leading_end is None


def test_tools_end_before_the_system_prompt_of_the_demo() -> None:
    first, second = (_encoded(DEMO, [_says("system", text), ASKED], tools=[WEATHER]) for text in ("Jump.", "Sit.\n"))
    assert first.boundaries.tools_end == second.boundaries.tools_end
    before = _before(first, first.boundaries.tools_end)
    assert "Zürich" in before and "Jump" not in before
    assert second.token_ids[: first.boundaries.tools_end] == first.token_ids[: first.boundaries.tools_end]
    alone = _encoded(DEMO, [ASKED], tools=[WEATHER]).boundaries
    assert alone.tools_end is not None and alone.tools_end == alone.leading_end


def _rounds(count: int) -> list[dict[str, Any]]:
    thought = {**CALLED, "reasoning_content": "I look."}
    return [SYSTEM, _says("user", "first"), _says("assistant", "done"), ASKED, *([thought, ANSWERED] * count)]


def test_turn_closure_stays_through_tool_rounds_and_the_next_turn() -> None:
    encoded = [_encoded(DEMO, _rounds(count), tools=[WEATHER]) for count in range(6)]
    [closure] = {one.boundaries.turn_closure for one in encoded}
    later = [*_rounds(5), _says("assistant", "Grey."), _says("user", "thanks")]
    for one in [*encoded, _encoded(DEMO, later, tools=[WEATHER])]:
        assert one.token_ids[:closure] == encoded[0].token_ids[:closure]
    replays = [one.boundaries.response_replay or 0 for one in encoded]
    assert replays == sorted(set(replays)) and replays[0] == closure
    for earlier, replay, next_one in zip(encoded, replays, encoded[1:], strict=False):
        assert next_one.token_ids[:replay] == earlier.token_ids[:replay]


CONTENTS = st.lists(
    st.sampled_from(
        [*TOKENIZER.special_texts, "\n", "\n\n", " ", "<|im_", "|>", "a", "word", " more words", "é", "e\u0301"]
    ),
    max_size=6,
).map("".join)


@pytest.mark.parametrize("template", [DEMO, _template(CHATML), WITHOUT_CONTROL], ids=["demo", "chatml", "plain"])
@given(contents=st.lists(CONTENTS, min_size=3, max_size=3), edited=CONTENTS)
@settings(deadline=None)
def test_any_content_keeps_boundaries_common(template: ChatTemplate, contents: list[str], edited: str) -> None:
    messages = [_says(role, text) for role, text in zip(("system", "user", "assistant"), contents, strict=True)]
    encoded = _encoded(template, [*messages, _says("user", "end")])
    other = _encoded(template, [*messages, _says("user", edited)])
    for boundary in encoded.boundaries.messages:
        assert encoded.text.startswith(_before(encoded, boundary.frontier))
        assert other.token_ids[: boundary.frontier] == encoded.token_ids[: boundary.frontier]
    for frontier in (encoded.boundaries.leading_end, encoded.boundaries.turn_closure):
        assert frontier is None or encoded.text.startswith(_before(encoded, frontier))
    if template is not WITHOUT_CONTROL:
        assert encoded.boundaries.turn_closure is not None
        assert 3 in _begins(encoded)


def test_a_template_without_control_tokens_has_boundaries_at_the_ends_of_lines() -> None:
    encoded = _encoded(WITHOUT_CONTROL, TURNS)
    assert _begins(encoded)[2].endswith("user: one\n")
    assert _before(encoded, encoded.boundaries.response_replay).endswith("user: three\n")


def test_a_template_that_refuses_prefixes_keeps_its_other_boundaries() -> None:
    strict = "{% if messages | length < 4 %}{{ raise_exception('too few') }}{% endif %}" + CHATML
    encoded = _encoded(_template(strict), TURNS)
    assert [boundary.message for boundary in encoded.boundaries.messages] == [1, 2, 3]
    assert encoded.boundaries.leading_end is None
    assert _before(encoded, encoded.boundaries.response_replay).endswith("three<|im_end|>\n")
    same = _encoded(_template(CHATML), TURNS)
    assert [_before(same, b.frontier) for b in same.boundaries.messages][1:] == list(_begins(encoded).values())[1:]


def test_a_continued_answer_can_be_answered_again_from_inside_it() -> None:
    messages = [*TURNS, _says("assistant", "four five six seven eight")]
    prompt = ChatPrompt(messages, add_generation_prompt=False, continue_final_message=True)
    encoded = encode_chat(_template(CHATML), TOKENIZER, prompt)
    assert _before(encoded, encoded.boundaries.response_replay).endswith("four five six seven")
    assert _before(encoded, encoded.boundaries.turn_closure).endswith("three<|im_end|>\n")
    assert 4 in _begins(encoded)


def test_an_empty_message_and_a_call_without_content_have_boundaries() -> None:
    messages = [_says("user", ""), _says("assistant", ""), _says("user", "x"), {**CALLED, "content": ""}, ANSWERED]
    encoded = _encoded(DEMO, messages, tools=[WEATHER])
    assert {2, 3, 4} <= set(_begins(encoded))
    assert encoded.boundaries.turn_closure is not None


def test_a_turn_tells_from_where_closing_it_makes_it_another() -> None:
    """The template shows what was thought since the last question only."""
    thinking = CHATML.replace(
        "+ m.content", "+ (m.thinking if m.thinking and loop.index0 > last.at else '') + m.content"
    )
    last = "{% for m in messages %}{% if m.role == 'user' %}{% set last.at = loop.index0 %}{% endif %}{% endfor %}"
    template = _template(f"{{% set last = namespace(at=0) %}}{last}{thinking}")
    rounds = [
        _says("assistant", "call"),
        _says("tool", "four"),
        _says("assistant", "call again"),
        _says("tool", "five"),
    ]
    turn = [_says("user", "one"), *rounds]
    assert _encoded(template, [_says("user", "one")]).boundaries.turn_rewrite is None
    assert _encoded(template, turn).boundaries.turn_rewrite is None
    for place in (1, 3):
        turn[place] = {**rounds[place - 1], "reasoning_content": "hm. "}
        encoded = _encoded(template, turn)
        starts = {start.message: start.frontier for start in encoded.boundaries.messages}
        assert encoded.boundaries.turn_rewrite == starts[place]
        turn[place] = rounds[place - 1]


def test_markers_are_resolved_to_frontiers() -> None:
    parts = [{"type": "text", "text": "long document with words"}, {"type": "text", "text": " and the question"}]
    source = CHATML.replace(
        "m.content", "(m.content if m.content is string else m.content | map(attribute='text') | join)"
    )
    messages = [TURNS[0], _says("user", "one"), _says("assistant", "two"), {"role": "user", "content": parts}]
    markers = (PromptMarker(0), PromptMarker(2), PromptMarker(3, 0), PromptMarker(3, 1))
    encoded = _encoded(_template(source), messages, markers=markers)
    before = [_before(encoded, frontier) for frontier in encoded.boundaries.markers]
    assert [text[-20:] for text in before[:2]] == [_begins(encoded)[1][-20:], _begins(encoded)[3][-20:]]
    assert before[2].endswith("user\nlong document with") or before[2].endswith("document with words")
    assert before[3] == _before(encoded, encoded.boundaries.response_replay)
    tools = _encoded(DEMO, TURNS, tools=[WEATHER], markers=(PromptMarker(None),)).boundaries
    assert tools.markers == (tools.tools_end,)


def test_a_fifth_marker_and_one_in_no_message_are_refused() -> None:
    four = tuple(PromptMarker(message) for message in (0, 1, 2, None))
    assert ChatPrompt(TURNS, markers=four).markers == four
    with pytest.raises(ValueError, match="5 markers; at most 4 work"):
        ChatPrompt(TURNS, markers=(*four, PromptMarker(1)))
    for message in (-1, len(TURNS)):
        with pytest.raises(ValueError, match=f"message {message} of {len(TURNS)}"):
            _encoded(DEMO, TURNS, markers=(PromptMarker(message),))


def test_markers_change_no_token() -> None:
    prompt = ChatPrompt(TURNS)
    marked = encode_chat(DEMO, TOKENIZER, replace(prompt, markers=(PromptMarker(1),)))
    assert marked.token_ids == encode_chat(DEMO, TOKENIZER, prompt).token_ids


def test_tokens_belong_to_the_message_that_began_last() -> None:
    boundaries = PromptBoundaries((MessageBoundary(5, 1), MessageBoundary(9, 2)), leading_end=5, markers=(7,))
    assert [boundaries.message_at(token) for token in (0, 4, 5, 8, 9, 20)] == [None, None, 1, 1, 2, 2]
    assert boundaries.frontiers == [5, 7, 9]
    assert RAW_PROMPT.frontiers == []
