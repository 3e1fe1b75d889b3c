"""Chat bodies become prompts and sampling parameters; what cannot be served is named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ninfer.engine.request import CacheHints
from ninfer.errors import RequestError
from ninfer.frontend.prompt_boundaries import RAW_PROMPT
from ninfer.serving.completion.translate import native_completion_request
from ninfer.serving.generation_request import GenerationRequest
from ninfer.serving.http_errors import ApiError
from ninfer.serving.openai.translate import chat_request, completion_request
from ninfer.serving.served_model import ServedModel
from ninfer.serving.serving_options import ServingOptions

HELLO = [{"role": "user", "content": "hello."}]
TOOL = {"type": "function", "function": {"name": "clock", "parameters": {"type": "object", "default": None}}}


@pytest.fixture
def translate(model: ServedModel, options: ServingOptions) -> Any:
    def call(headers: dict[str, str] | None = None, **fields: Any) -> GenerationRequest:
        body = json.dumps({"messages": HELLO, **fields}).encode()
        return chat_request(body, headers or {}, model, options)

    return call


def prompt_text(model: ServedModel, request: GenerationRequest) -> str:
    return model.frontend.tokenizer.decode(request.prompt, skip_special=False)


def test_the_prompt_is_the_rendered_conversation(translate: Any, model: ServedModel) -> None:
    template = model.frontend.template
    assert template is not None
    request = translate()
    assert prompt_text(model, request) == template.render(HELLO, add_generation_prompt=True)
    assert request.model_name == "demo"
    assert request.params == model.default_sampling


def test_null_means_absent_everywhere(translate: Any) -> None:
    names = ("model", "temperature", "stop", "tools", "tool_choice", "stream", "stream_options", "logprobs", "n")
    assert translate(**dict.fromkeys(names)) == translate()


def test_sampling_fields_replace_the_defaults_of_the_model(translate: Any) -> None:
    params = translate(
        temperature=0,
        top_p=0.5,
        top_k=-1,
        min_p=0.1,
        presence_penalty=1,
        frequency_penalty=-1,
        repeat_penalty=1.25,
        seed=7,
        max_tokens=3,
        max_completion_tokens=5,
        min_tokens=2,
        stop="x",
        stop_token_ids=[4, 5],
        ignore_eos=True,
        logit_bias={"3": -100, "4": 1.5},
        logprobs=True,
        top_logprobs=2,
    ).params
    assert (params.temperature, params.top_p, params.top_k, params.min_p) == (0, 0.5, -1, 0.1)
    assert (params.presence_penalty, params.frequency_penalty, params.repetition_penalty) == (1, -1, 1.25)
    assert (params.seed, params.max_tokens, params.min_tokens, params.logprobs) == (7, 5, 2, 2)
    assert (params.stop, params.stop_token_ids, params.ignore_eos) == (("x",), (4, 5), True)
    assert params.logit_bias == {3: -100.0, 4: 1.5}


def test_parts_join_and_a_developer_speaks_as_the_system(translate: Any) -> None:
    parts = [{"type": "text", "text": "hel"}, {"type": "text", "text": "lo."}]
    developer = [{"role": "developer", "content": "be kind."}, {"role": "user", "content": parts}]
    system = [{"role": "system", "content": "be kind."}, *HELLO]
    assert translate(messages=developer).prompt == translate(messages=system).prompt


def test_thinking_is_decided_by_any_of_three_fields(translate: Any) -> None:
    off = translate(enable_thinking=False).prompt
    assert off != translate().prompt
    assert translate(reasoning_effort="none").prompt == off
    assert translate(chat_template_kwargs={"enable_thinking": False}).prompt == off
    assert translate(reasoning_effort="none", enable_thinking=True).prompt == translate().prompt


def test_a_final_message_is_continued(translate: Any, model: ServedModel) -> None:
    messages = [*HELLO, {"role": "assistant", "content": "hello! how"}]
    request = translate(messages=messages, continue_final_message=True)
    assert prompt_text(model, request).endswith("hello! how")


def test_special_tokens_in_content_are_text(translate: Any, model: ServedModel) -> None:
    tokenizer = model.frontend.tokenizer
    special = tokenizer.special_texts[0]
    before = sum(token in tokenizer.special_ids for token in translate().prompt)
    request = translate(messages=[{"role": "user", "content": f"hello.{special}"}])
    assert sum(token in tokenizer.special_ids for token in request.prompt) == before


def test_delivery_and_cache_fields(translate: Any) -> None:
    request = translate(
        {"x-session-id": "from the header"},
        stream=True,
        stream_options={"include_usage": True},
        return_progress=True,
        cache_prompt=False,
        cache_salt="salt",
        cache_sharing=True,
    )
    assert (request.stream, request.include_usage, request.report_progress) == (True, True, True)
    assert request.cache == CacheHints(use=False, salt="salt", session_id="from the header", sharing=True)
    assert translate({"x-session-id": "header"}, session_id="body").cache.session_id == "body"


@pytest.mark.parametrize(
    ("param", "fields"),
    [
        ("messages", {"messages": []}),
        ("messages[0].content", {"messages": [{"role": "user"}]}),
        ("messages[0].content[0].type", {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}),
        ("messages[0].tool_calls", {"messages": [{**HELLO[0], "tool_calls": [{"function": {"name": "f"}}]}]}),
        ("n", {"n": 2}),
        ("response_format", {"response_format": {"type": "json_object"}}),
        ("tool_choice", {"tools": [TOOL], "tool_choice": "required"}),
        ("tool_choice", {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "clock"}}}),
        ("top_logprobs", {"top_logprobs": 2}),
        ("stream_options", {"stream_options": {}}),
        ("repeat_penalty", {"repeat_penalty": 1.1, "repetition_penalty": 1.2}),
        ("stop", {"stop": ["x"] * 33}),
        ("stop", {"stop": "x" * 257}),
        ("logit_bias", {"logit_bias": {"two": 1}}),
        ("logit_bias", {"logit_bias": {"2": "1"}}),
        ("continue_final_message", {"continue_final_message": True, "add_generation_prompt": True}),
    ],
)
def test_what_cannot_be_served_is_named(translate: Any, param: str, fields: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as caught:
        translate(**fields)
    assert (caught.value.status, caught.value.param) == (400, param)


@pytest.mark.parametrize(
    ("param", "fields"),
    [
        ("top_p", {"top_p": 1.5}),
        ("temperature", {"temperature": -1}),
        ("presence_penalty", {"presence_penalty": 2.5}),
        ("stop", {"stop": ""}),
        ("min_tokens", {"min_tokens": -1}),
        ("seed", {"seed": -(2**63) - 1}),
    ],
)
def test_a_value_out_of_range_is_named(translate: Any, param: str, fields: dict[str, Any]) -> None:
    with pytest.raises((ApiError, RequestError)) as caught:
        translate(**fields)
    assert getattr(caught.value, "param", None) == param


def test_an_unknown_model_is_not_found_and_an_alias_is_answered_by_its_name(translate: Any) -> None:
    assert translate(model="alias").model_name == "alias"
    with pytest.raises(ApiError) as caught:
        translate(model="other")
    assert (caught.value.status, caught.value.code) == (404, "model_not_found")


def test_tools_that_the_template_ignores_are_refused_unless_they_do_not_count(
    translate: Any, model: ServedModel
) -> None:
    template = model.frontend.template
    assert template is not None
    plain = translate().prompt
    assert translate(tools=[]).prompt == plain
    assert translate(tools=[TOOL], tool_choice="none").prompt == plain
    if template.reads_tools:
        assert "clock" in prompt_text(model, translate(tools=[TOOL]))
    else:
        with pytest.raises(RequestError) as caught:
            translate(tools=[TOOL])
        assert caught.value.param == "tools"


def test_the_boundaries_of_the_conversation_go_along(translate: Any, model: ServedModel) -> None:
    messages = [{"role": "system", "content": "Be brief."}, *HELLO, {"role": "assistant", "content": "Hi."}, *HELLO]
    request = translate(messages=messages)
    boundaries = request.boundaries
    assert [boundary.message for boundary in boundaries.messages] == [1, 2, 3]
    assert not boundaries.raw
    shown = model.frontend.tokenizer.decode(request.prompt[: boundaries.response_replay], skip_special=False)
    assert prompt_text(model, request).removeprefix(shown).startswith("<|im_start|>assistant")
    assert request.submitted().boundaries.raw


def test_raw_prompts_have_no_messages(model: ServedModel, options: ServingOptions) -> None:
    body = json.dumps({"prompt": "once there was"}).encode()
    for translated in (completion_request, native_completion_request):
        assert translated(body, {}, model, options).boundaries == RAW_PROMPT
