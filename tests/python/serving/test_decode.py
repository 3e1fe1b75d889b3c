"""Bodies are decoded by us: what is no JSON object is a 400, and the first wrong field is named."""

from __future__ import annotations

import time
from typing import Any

import pytest

from ninfer.serving.decode import checked, decode_object
from ninfer.serving.http_errors import ApiError
from ninfer.serving.openai.wire import ChatBody
from tests.python.serving.malformed_bodies import MALFORMED

USER = {"role": "user", "content": "hi"}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_body_is_refused(body: bytes) -> None:
    with pytest.raises(ApiError) as caught:
        decode_object(body)
    assert caught.value.status == 400
    assert caught.value.code == "invalid_json"


def test_what_json_allows_is_kept() -> None:
    body = b' {"text": "\\u0000 \\ud83d\\ude00 \xc3\xa9", "big": 18446744073709551615, "deep": [[[1]]], "none": null}\n'
    assert decode_object(body) == {"text": "\0 😀 é", "big": 2**64 - 1, "deep": [[[1]]], "none": None}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({}, "messages"),
        ({"messages": "hello"}, "messages"),
        ({"messages": [{"content": "x"}]}, "messages[0].role"),
        ({"messages": [USER, {"role": "robot", "content": "x"}]}, "messages[1].role"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"text": "x"}]}]}, "messages[0].content[0].type"),
        ({"messages": [USER], "temperature": "hot"}, "temperature"),
        ({"messages": [USER], "temperature": True}, "temperature"),
        ({"messages": [USER], "seed": 1.5}, "seed"),
        ({"messages": [USER], "max_tokens": 0}, "max_tokens"),
        ({"messages": [USER], "stop": [1]}, "stop[0]"),
        ({"messages": [USER], "tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
        ({"messages": [USER], "stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
        ({"messages": [USER], "no_such_field": 1}, "no_such_field"),
    ],
)
def test_the_first_wrong_field_is_named(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as caught:
        checked(ChatBody, fields)
    assert caught.value.status == 400
    assert caught.value.param == param
    assert caught.value.message.startswith(param)


def test_a_million_wrong_elements_cost_one_error() -> None:
    wrong: dict[str, Any] = {"messages": [0] * 1_000_000}
    start = time.perf_counter()
    with pytest.raises(ApiError):
        checked(ChatBody, wrong)
    with pytest.raises(ApiError):
        checked(ChatBody, {f"field {index}": 0 for index in range(1_000_000)})
    assert time.perf_counter() - start < 5


def test_the_error_body_has_the_shape_of_the_protocol_whatever_the_client_wrote() -> None:
    with pytest.raises(ApiError) as caught:
        checked(ChatBody, {"messages": [USER], "x" * 1_000_000: 1})
    error = caught.value.body()["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"
    assert len(error["message"]) < 2_000 and len(error["param"]) < 2_000
