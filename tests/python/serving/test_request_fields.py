"""Fields that reach the engine with the request, and what comes back of them."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from ninfer.engine.events import DEADLINE, Cancelled, Finished, RequestTimings, TokenEvent
from ninfer.engine.request import CacheHints
from ninfer.serving.app import create_app
from ninfer.serving.served_model import ServedModel
from ninfer.serving.serving_options import ServingOptions
from tests.python.serving.event_stream import stream_chunks
from tests.python.serving.scripted_engine import ScriptedEngine, answer_events

GENERATING: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hello."}]},
    "/v1/completions": {"prompt": "hello"},
    "/completion": {"prompt": "hello"},
}


@pytest.mark.parametrize("path", GENERATING)
def test_what_clients_say_about_the_cache_reaches_the_engine(
    client: TestClient, engine: ScriptedEngine, model: ServedModel, path: str
) -> None:
    engine.answer = answer_events(model.frontend.tokenizer, "hello")
    fields = {"cache_prompt": False, "cache_salt": "salt", "session_id": "one", "cache_sharing": True}
    headers = {"x-session-id": "two"}
    bodies: list[dict[str, Any]] = [{}, fields, dict.fromkeys(fields), {"cache_salt": "salt"}]
    for body in bodies:
        response = client.post(path, json={**GENERATING[path], **body}, headers=headers)
        assert response.status_code == 200, response.text
        reuse = response.json()["reuse"]
        assert reuse["source"] == "root" and reuse["frontier"] == 0
    assert [request.cache for request in engine.requests.values()] == [
        CacheHints(session_id="two"),
        CacheHints(use=False, salt="salt", session_id="one", sharing=True),
        CacheHints(session_id="two"),
        CacheHints(salt="salt", session_id="two"),
    ]


@pytest.mark.parametrize("path", GENERATING)
@pytest.mark.parametrize(
    ("param", "fields"),
    [
        ("cache_prompt", {"cache_prompt": "yes"}),
        ("cache_salt", {"cache_salt": 3}),
        ("cache_salt", {"cache_salt": ""}),
        ("session_id", {"session_id": "x" * 257}),
        ("cache_sharing", {"cache_sharing": "yes", "cache_salt": "salt"}),
        ("cache_sharing", {"cache_sharing": True}),
    ],
)
def test_what_clients_say_about_the_cache_is_checked(
    client: TestClient, engine: ScriptedEngine, path: str, param: str, fields: dict[str, Any]
) -> None:
    response = client.post(path, json={**GENERATING[path], **fields})
    assert (response.status_code, response.json()["error"]["param"]) == (400, param)
    assert not engine.requests


@pytest.mark.parametrize("path", GENERATING)
def test_a_session_header_is_checked(client: TestClient, engine: ScriptedEngine, path: str) -> None:
    response = client.post(path, json=GENERATING[path], headers={"x-session-id": "x" * 257})
    assert (response.status_code, response.json()["error"]["param"]) == (400, "x-session-id")
    assert not engine.requests


@pytest.mark.parametrize("path", GENERATING)
def test_a_request_that_takes_too_long_is_told_so(engine: ScriptedEngine, model: ServedModel, path: str) -> None:
    options = ServingOptions(served_model_names=("demo",), request_timeout_s=90.0)
    engine.answer = [TokenEvent(40, "a", None), Cancelled(DEADLINE)]
    with TestClient(create_app(engine, engine.router, model, options)) as client:
        response = client.post(path, json=GENERATING[path])
        assert (response.status_code, response.json()["error"]["code"]) == (503, "request_timeout")
        stream = client.post(path, json={**GENERATING[path], "stream": True}).text
        *_, last = stream_chunks(stream, done=path.startswith("/v1"))
        assert last["error"]["code"] == "request_timeout"
    assert [request.timeout_s for request in engine.requests.values()] == [90.0, 90.0]


@pytest.mark.parametrize(
    ("stop_string", "reason", "stop_type"), [("wo", "stop", "word"), (None, "stop", "eos"), (None, "length", "limit")]
)
@pytest.mark.parametrize("stream", [False, True])
def test_the_native_endpoint_says_which_stop_string_ended_the_answer(
    client: TestClient, engine: ScriptedEngine, stop_string: str | None, reason: Any, stop_type: str, stream: bool
) -> None:
    timings = RequestTimings(9, 0, 2.0, 1, 4.0, 0.5, 0, 100)
    engine.answer = [TokenEvent(40, "one ", None), Finished(reason, timings, 9, 1, stop_string)]
    response = client.post("/completion", json={"prompt": "zero", "stop": ["wo"], "stream": stream})
    last = stream_chunks(response.text, done=False)[-1] if stream else response.json()
    assert (last["stop_type"], last["stopping_word"]) == (stop_type, stop_string or "")


@pytest.mark.parametrize("content", [{"content": None}, {}])
def test_a_turn_that_only_calls_tools_has_no_content(
    client: TestClient, engine: ScriptedEngine, model: ServedModel, content: dict[str, None]
) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "clock", "arguments": '{"zone": "utc"}'}}
    messages = [
        {"role": "user", "content": "what time is it?"},
        {"role": "assistant", "tool_calls": [call], **content},
        {"role": "tool", "content": "noon", "tool_call_id": "1"},
    ]
    tool = {"type": "function", "function": {"name": "clock", "parameters": {"type": "object"}}}
    body = {"messages": messages, "tools": [tool]}
    prompt = client.post("/apply-template", json=body).json()["prompt"]
    assert "None" not in prompt and "clock" in prompt and "noon" in prompt
    engine.answer = answer_events(model.frontend.tokenizer, "hello")
    assert client.post("/v1/chat/completions", json=body).status_code == 200
    [request] = engine.requests.values()
    assert model.frontend.tokenizer.decode(request.prompt, skip_special=False) == prompt
