"""What a chat template may do, where it is found, and what happens when it refuses."""

from __future__ import annotations

import datetime as datetime_module
import json
from pathlib import Path
from typing import Any

import pytest

from ninfer.errors import ModelFileError, RequestError
from ninfer.frontend.chat_template import ChatTemplate
from ninfer.frontend.template_source import (
    TemplateSource,
    template_of_file,
    template_of_gguf,
    template_of_hf_directory,
)
from ninfer.frontend.tool_call_arguments import with_argument_objects

NOW = datetime_module.datetime(2026, 7, 5, 13, 14, 15)  # templates ask for local time
HI = [{"role": "user", "content": "hi"}]


def _template(text: str, tool_use: str | None = None) -> ChatTemplate:
    return ChatTemplate(TemplateSource("inline", text, tool_use), {"bos_token": "<s>"}, lambda: NOW)


def _render(text: str, messages: list[dict[str, Any]] = HI, **more: Any) -> str:
    return _template(text).render(messages, **{"add_generation_prompt": False, **more})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ bos_token }}{{ messages[0].content }}", "<s>hi"),
        ("  {% if true %}\nx\n  {% endif %}\ny", "x\ny"),
        ("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "01"),
        ("{{ {'é': '<&\\'>'} | tojson }}", '{"é": "<&\'>"}'),
        ("{{ {'b': 'é', 'a': 1} | tojson(ensure_ascii=true, sort_keys=true) }}", '{"a": 1, "b": "\\u00e9"}'),
        ("{{ [1] | tojson(indent=2) }}{{ [1, 2] | tojson(separators=(',', ':')) }}", "[\n  1\n][1,2]"),
        ("{{ strftime_now('%d %b %Y') }}", "05 Jul 2026"),
        ("a{% generation %}{% set x = 'b' %}{{ x }}{% endgeneration %}c{{ x is defined }}", "abcFalse"),
        ("{% set ns = namespace(a=1) %}{% set ns.a = 2 %}{{ ns.a }}{{ dict(b=3).b }}", "23"),
        (
            "{{ documents is none }}{{ tools is none }}{{ add_generation_prompt }}{{ absent is defined }}",
            "TrueTrueFalseFalse",
        ),
        ("{{ extra }}", "more"),
    ],
)
def test_rendering(text: str, expected: str) -> None:
    assert _render(text, extra="more") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ messages.append(1) }}", "unsafe"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ strftime_now.__self__.year }}", "unsafe"),
        ("{% set ns = namespace(__init__=1) %}", "__init__"),
        ("{% set ns = namespace() %}{% set ns._x = 1 %}", "_x"),
        ("{{ messages[0].content + 1 }}", "TypeError"),
        ("{{ missing.attribute }}", "missing"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "RecursionError"),
        ("{{ range(10 ** 9) }}", "Range too big"),
    ],
)
def test_a_failing_template_refuses_the_request(text: str, message: str) -> None:
    with pytest.raises(RequestError, match=message) as caught:
        _render(text)
    assert caught.value.param == "messages"


def test_a_template_that_is_no_jinja_names_file_and_line() -> None:
    with pytest.raises(ModelFileError, match="line 2") as caught:
        _template("a\n{% if %}")
    assert caught.value.file == "inline"


@pytest.mark.parametrize(
    "text",
    [
        "{{ " + "9" * 5000 + " }}",
        "{% for i in x %}" * 30 + "{% endfor %}" * 30,
        "{% if x %}" * 150 + "{% endif %}" * 150,
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{{ " + "-" * 3000 + "1 }}",
    ],
    ids=["long number", "nested loops", "nested conditions", "parentheses", "signs"],
)
def test_what_no_compiler_takes_is_refused_with_its_file(text: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        _template(text)
    assert caught.value.key == "chat_template"
    assert caught.value.found


def test_null_means_absent_and_reasoning_has_all_its_names() -> None:
    message = {"role": "assistant", "content": None, "reasoning": "r"}
    text = "{{ messages[0].content is defined }}{{ messages[0].reasoning_content }}{{ messages[0].thinking }}"
    assert _render(text, [message]) == "Falserr"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"a": 1}', {"a": 1}),
        ({"a": 1}, {"a": 1}),
        ("", ""),
        ("[1]", "[1]"),
        ("{broken", "{broken"),
        ('{"a": ' + "9" * 5000 + "}", '{"a": ' + "9" * 5000 + "}"),
        ("[" * 100_000, "[" * 100_000),
        (None, None),
    ],
)
def test_arguments_become_objects(arguments: object, expected: object) -> None:
    nested = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": arguments}}, "odd"]}
    flat = {"role": "assistant", "tool_calls": [{"name": "f", "arguments": arguments}]}
    assert with_argument_objects(nested, "")["tool_calls"] == [
        {"function": {"name": "f", "arguments": expected}},
        "odd",
    ]
    assert with_argument_objects(flat, "")["tool_calls"] == [{"name": "f", "arguments": expected}]
    assert with_argument_objects({"tool_calls": arguments}, "") == {"tool_calls": arguments}


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e999", '"\\ud800"', '{"b": ["\\udc00"]}'])
def test_arguments_that_are_no_json_are_refused_where_they_stand(value: str) -> None:
    calls = [{"function": {"name": "f", "arguments": one}} for one in ('{"a": "NaN"}', f'{{"a": {value}}}')]
    with pytest.raises(RequestError) as caught:
        _render("{{ messages }}", [*HI, {"role": "assistant", "content": "", "tool_calls": calls}])
    assert caught.value.param == "messages[1].tool_calls[1].function.arguments"


@pytest.mark.parametrize("param", ["messages", "tools", "chat_template_kwargs"])
def test_deep_nesting_is_refused_where_it_stands(param: str) -> None:
    nested: Any = "x"
    for _ in range(100_000):
        nested = [nested]
    messages = [{"role": "user", "content": nested if param == "messages" else "hi"}]
    more: dict[str, Any] = {"tools": {"tools": [{"a": nested}]}, "chat_template_kwargs": {"a": nested}}.get(param, {})
    with pytest.raises(RequestError, match="nested") as caught:
        _render("{{ messages }}{{ tools }}", messages, **more)
    assert caught.value.param == param


@pytest.mark.parametrize(
    ("text", "kwargs", "param"),
    [
        ("{{ strftime_now('%d') }}", {"strftime_now": 3}, "chat_template_kwargs"),
        ("{% if depth %}{{ depth + 1 }}{% endif %}", {"depth": "deep"}, "chat_template_kwargs"),
        ("{% if mode == 'x' %}{{ raise_exception('no such mode') }}{% endif %}", {"mode": "x"}, "chat_template_kwargs"),
        ("{{ messages[0].content + 1 }}", {"mode": "x"}, "messages"),
        ("{{ messages[0].content + 1 }}", {}, "messages"),
    ],
)
def test_what_makes_a_template_fail_is_named(text: str, kwargs: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        _render(text, **kwargs)
    assert caught.value.param == param


def test_tool_use_template_takes_over_when_there_are_tools() -> None:
    template = _template("plain", "{{ tools | length }}")
    assert template.render(HI, add_generation_prompt=True) == "plain"
    assert template.render(HI, tools=[{}], add_generation_prompt=True) == "1"
    assert template.reads_tools
    assert not _template("plain").reads_tools


@pytest.mark.parametrize(
    ("text", "content", "expected"),
    [
        ("[{{ messages[-1].content }}]", "so ", "[so "),
        ("[{{ messages[-1].content | trim }}]", "so ", "[so"),
        ("[{{ messages[-1].content[-1].text }}]", [{"type": "text", "text": "so"}], "[so"),
    ],
)
def test_the_last_message_is_left_open(text: str, content: Any, expected: str) -> None:
    messages = [{"role": "assistant", "content": content}]
    assert _render(text, messages, continue_final_message=True) == expected


@pytest.mark.parametrize(
    ("text", "messages", "more"),
    [
        ("{{ messages[0].content }}", HI, {"add_generation_prompt": True}),
        ("nothing of it", HI, {}),
        ("{{ messages }}", [], {}),
        ("{{ messages }}", [{"role": "assistant", "content": []}], {}),
    ],
)
def test_what_cannot_be_continued(text: str, messages: list[dict[str, Any]], more: dict[str, Any]) -> None:
    with pytest.raises(RequestError, match="continue_final_message"):
        _render(text, messages, continue_final_message=True, **more)


def test_sources(tmp_path: Path) -> None:
    config = tmp_path / "tokenizer_config.json"
    assert template_of_hf_directory(tmp_path) is None
    config.write_text("{}")
    assert template_of_hf_directory(tmp_path) is None
    config.write_text(json.dumps({"chat_template": "one"}))
    assert template_of_hf_directory(tmp_path) == TemplateSource(str(config), "one")
    named = [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]
    config.write_text(json.dumps({"chat_template": named}))
    assert template_of_hf_directory(tmp_path) == TemplateSource(str(config), "d", "t")
    file = tmp_path / "chat_template.jinja"
    file.write_text("fïle\n", encoding="utf-8")
    assert template_of_hf_directory(tmp_path) == template_of_file(file) == TemplateSource(str(file), "fïle\n")
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates" / "tool_use.jinja").write_text("u")
    assert template_of_hf_directory(tmp_path) == TemplateSource(str(file), "fïle\n", "u")
    assert template_of_gguf({}, "x.gguf") is None
    metadata = {"tokenizer.chat_template": "g", "tokenizer.chat_template.tool_use": "h"}
    assert template_of_gguf(metadata, "x.gguf") == TemplateSource("x.gguf", "g", "h")


@pytest.mark.parametrize("value", [7, [7], [{"name": "default"}], [{"name": "tool_use", "template": "x"}], [], {}])
def test_damaged_sources(tmp_path: Path, value: Any) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": value}))
    with pytest.raises(ModelFileError) as caught:
        template_of_hf_directory(tmp_path)
    assert caught.value.key == "chat_template"
    with pytest.raises(ModelFileError):
        template_of_gguf({"tokenizer.chat_template": value}, "x.gguf")
