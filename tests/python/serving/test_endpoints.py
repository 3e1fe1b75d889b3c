"""Every endpoint over an engine that says what it is told."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from ninfer.engine.events import Cancelled, Failed, PrefillProgress
from ninfer.engine.service import EngineHealth
from ninfer.errors import EngineFailedError, QueueFullError, RequestError
from ninfer.serving.app import create_app
from ninfer.serving.served_model import ServedModel
from ninfer.serving.serving_options import ServingOptions
from tests.python.serving.event_stream import stream_chunks
from tests.python.serving.malformed_bodies import MALFORMED
from tests.python.serving.scripted_engine import ScriptedEngine, answer_events

CHAT = {"messages": [{"role": "user", "content": "hello."}]}
GENERATING: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": CHAT,
    "/v1/completions": {"prompt": "hello"},
    "/completion": {"prompt": "hello"},
}
POST_PATHS = [*GENERATING, "/chat/completions", "/completions", "/tokenize", "/detokenize", "/apply-template"]


@pytest.fixture
def talking(engine: ScriptedEngine, model: ServedModel) -> ScriptedEngine:
    engine.answer = answer_events(model.frontend.tokenizer, "hm\n</think>\n\nhello é!")
    return engine


def error_of(response: Any, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    error: dict[str, Any] = response.json()["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    return error


@pytest.mark.usefixtures("talking")
def test_a_chat_answer_is_split_and_accounted(client: TestClient) -> None:
    answer = client.post("/v1/chat/completions", json=CHAT).json()
    assert answer["object"] == "chat.completion" and answer["model"] == "demo"
    [choice] = answer["choices"]
    assert choice["message"] == {"role": "assistant", "content": "hello é!", "reasoning_content": "hm"}
    assert choice["finish_reason"] == "stop" and choice["logprobs"] is None
    usage, timings = answer["usage"], answer["timings"]
    assert usage["prompt_tokens"] == timings["prompt_n"] == 9
    assert usage["completion_tokens"] == timings["predicted_n"] == usage["total_tokens"] - 9
    assert usage["prompt_tokens_details"] == {"cached_tokens": 0}
    assert (timings["cache_n"], timings["queue_ms"], timings["planning_us"], timings["max_tokens"]) == (0, 0.5, 0, 100)
    assert answer["reuse"] == {"source": "root", "path": "root", "frontier": 0}


@pytest.mark.usefixtures("talking")
def test_a_chat_stream_says_the_same(client: TestClient) -> None:
    whole = client.post("/v1/chat/completions", json=CHAT).json()
    response = client.post("/chat/completions", json={**CHAT, "stream": True})
    assert response.headers["content-type"].startswith("text/event-stream")
    chunks = stream_chunks(response.text)
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in chunks}) == 1
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert "".join(delta.get("content", "") for delta in deltas) == "hello é!"
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "hm"
    *before, last = chunks
    assert all(chunk["choices"][0]["finish_reason"] is None and "usage" not in chunk for chunk in before)
    assert last["choices"][0]["finish_reason"] == "stop"
    for field in ("usage", "timings", "reuse"):
        assert last[field] == whole[field]


@pytest.mark.usefixtures("talking")
def test_include_usage_adds_the_standard_last_chunk(client: TestClient) -> None:
    body = {**CHAT, "stream": True, "stream_options": {"include_usage": True}}
    *_, finishing, last = stream_chunks(client.post("/v1/chat/completions", json=body).text)
    assert finishing["choices"][0]["finish_reason"] == "stop"
    assert last["choices"] == []
    for field in ("usage", "timings", "reuse"):
        assert last[field] == finishing[field]


@pytest.mark.parametrize("stream", [False, True])
def test_logprobs_cover_every_token_of_the_content(
    client: TestClient, engine: ScriptedEngine, model: ServedModel, stream: bool
) -> None:
    engine.answer = answer_events(model.frontend.tokenizer, "hello é!", logprobs=True)
    body = {**CHAT, "logprobs": True, "top_logprobs": 2, "stream": stream}
    response = client.post("/v1/chat/completions", json=body)
    choices = [c["choices"][0] for c in stream_chunks(response.text)] if stream else response.json()["choices"]
    entries = [entry for choice in choices if choice["logprobs"] for entry in choice["logprobs"]["content"]]
    assert bytes(byte for entry in entries for byte in entry["bytes"]).decode() == "hello é!"
    assert all(entry["logprob"] == -0.25 for entry in entries)
    assert [top["logprob"] for top in entries[0]["top_logprobs"]] == [-0.25, -9999.0]
    [request] = engine.requests.values()
    assert request.params.logprobs == 2


@pytest.mark.parametrize("prompt", ["hello", ["hello"], [5, 6], [[5, 6]]])
def test_a_prompt_is_a_text_or_ids(
    client: TestClient, talking: ScriptedEngine, model: ServedModel, prompt: Any
) -> None:
    for path in ("/v1/completions", "/completion"):
        assert client.post(path, json={"prompt": prompt}).status_code == 200
    ids = [5, 6] if "hello" not in prompt else model.text_prompt("hello")
    assert [request.prompt for request in talking.requests.values()] == [ids, ids]


@pytest.mark.parametrize(("reason", "stop_type"), [("stop", "eos"), ("length", "limit")])
def test_the_native_completion_endpoint(
    client: TestClient, engine: ScriptedEngine, model: ServedModel, reason: Any, stop_type: str
) -> None:
    tokenizer = model.frontend.tokenizer
    engine.answer = answer_events(tokenizer, "one two", reason=reason)
    body = {"prompt": "zero", "n_predict": 7, "seed": -1, "logit_bias": [[5, False]], "unknown": 1, "mirostat": 0}
    answer = client.post("/completion", json=body).json()
    assert (answer["content"], answer["stop"], answer["stop_type"]) == ("one two", True, stop_type)
    assert tokenizer.decode(answer["tokens"], skip_special=False) == "one two"
    assert (answer["tokens_evaluated"], answer["tokens_cached"]) == (9, 0)
    assert answer["usage"]["prompt_tokens"] == 9 and answer["reuse"]["source"] == "root"
    [request] = engine.requests.values()
    assert request.params.max_tokens == 7 and request.params.logit_bias == {5: -1e30}
    chunks = stream_chunks(client.post("/completion", json={**body, "stream": True}).text, done=False)
    assert [chunk["stop"] for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert "".join(chunk["content"] for chunk in chunks) == "one two"
    assert chunks[-1]["timings"] == answer["timings"]


@pytest.mark.parametrize("path", GENERATING)
def test_progress_is_streamed_when_asked_for(client: TestClient, talking: ScriptedEngine, path: str) -> None:
    talking.answer = [PrefillProgress(4, 9), *talking.answer]
    response = client.post(path, json={**GENERATING[path], "stream": True, "return_progress": True})
    chunks = stream_chunks(response.text, done=path.startswith("/v1"))
    [progress] = [chunk["prompt_progress"] for chunk in chunks if "prompt_progress" in chunk]
    assert (progress["processed"], progress["total"], progress["cache"]) == (4, 9, 0)
    assert 0 <= progress["time_ms"] < 60_000
    [request] = talking.requests.values()
    assert request.report_progress


@pytest.mark.parametrize("path", POST_PATHS)
@pytest.mark.parametrize("content_type", [None, "application/x-www-form-urlencoded", "text/plain", "nonsense"])
@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_body_is_a_400_in_the_shape_of_the_protocol(
    client: TestClient, engine: ScriptedEngine, path: str, content_type: str | None, body: bytes
) -> None:
    headers = {} if content_type is None else {"content-type": content_type}
    error = error_of(client.post(path, content=body, headers=headers), 400)
    assert error["type"] == "invalid_request_error" and error["code"] == "invalid_json"
    assert not engine.requests


@pytest.mark.usefixtures("talking")
@pytest.mark.parametrize("path", GENERATING)
def test_the_content_type_does_not_matter_and_neither_do_nul_characters(client: TestClient, path: str) -> None:
    content = '{"prompt": "a\\u0000b", "messages": [{"role": "user", "content": "a\\u0000b"}]}'
    if path == "/v1/chat/completions":
        content = content.replace('"prompt": "a\\u0000b", ', "")
    elif path == "/v1/completions":
        content = '{"prompt": "a\\u0000b"}'
    response = client.post(path, content=content, headers={"content-type": "application/x-www-form-urlencoded"})
    assert response.status_code == 200, response.text


@pytest.mark.parametrize("path", POST_PATHS)
def test_a_body_over_the_limit_is_a_413(client: TestClient, path: str) -> None:
    body = b'{"prompt": "' + b"a" * (1 << 20) + b'"}'
    assert error_of(client.post(path, content=body), 413)["code"] == "body_too_large"
    pieces = iter([body[: 1 << 19], body[1 << 19 :]])
    assert error_of(client.post(path, content=pieces), 413)["code"] == "body_too_large"


@pytest.mark.parametrize("path", GENERATING)
@pytest.mark.parametrize("stream", [False, True])
def test_refusals_come_before_the_first_byte_of_a_stream(
    client: TestClient, engine: ScriptedEngine, path: str, stream: bool
) -> None:
    body = {**GENERATING[path], "stream": stream}
    engine.refusal = RequestError("prompt", "600 tokens, the context holds 512")
    error = error_of(client.post(path, json=body), 400)
    assert error["param"] == "prompt" and "600" in error["message"] and "512" in error["message"]
    engine.refusal = QueueFullError(64, 3)
    response = client.post(path, json=body)
    assert error_of(response, 429)["type"] == "rate_limit_error"
    assert response.headers["retry-after"] == "3"
    engine.refusal = EngineFailedError("the engine has failed: out of luck")
    assert "out of luck" in error_of(client.post(path, json=body), 503)["message"]
    assert error_of(client.post(path, json={**body, "model": "other"}), 404)["code"] == "model_not_found"


@pytest.mark.parametrize(
    ("end", "status", "code"),
    [
        (Cancelled("shutdown"), 503, "unavailable"),
        (Failed("the engine has failed: out of luck"), 503, "engine_failed"),
        (Failed("no finite logit", "no_finite_logit"), 500, "no_finite_logit"),
    ],
)
@pytest.mark.parametrize("path", GENERATING)
def test_an_answer_that_breaks_off_says_why(
    client: TestClient, talking: ScriptedEngine, path: str, end: Cancelled | Failed, status: int, code: str
) -> None:
    talking.answer = [*talking.answer[:1], end]
    reason = end.reason if isinstance(end, Cancelled) else end.message
    error = error_of(client.post(path, json=GENERATING[path]), status)
    assert reason in error["message"] and error["code"] == code
    response = client.post(path, json={**GENERATING[path], "stream": True})
    *_, last = stream_chunks(response.text, done=path.startswith("/v1"))
    assert last["error"] == error
    assert talking.router.open_entries == 0


def test_only_known_keys_open_what_is_locked(engine: ScriptedEngine, model: ServedModel) -> None:
    options = ServingOptions(served_model_names=("demo",), api_keys=frozenset({"one", "zwei ü", "три à"}))
    with TestClient(create_app(engine, engine.router, model, options)) as client:
        assert client.get("/health").status_code == 200
        for wrong in ({}, {"authorization": "Bearer three"}, {"authorization": "Basic one"}, {"x-api-key": "on"}):
            assert error_of(client.get("/v1/models", headers=wrong), 401)["type"] == "authentication_error"
            assert error_of(client.post("/v1/completions", content=b"{", headers=wrong), 401)
        assert client.get("/v1/models", headers={"authorization": "bearer one"}).status_code == 200
        assert client.get("/v1/models", headers={"x-api-key": "one"}).status_code == 200
        for known in ("zwei ü".encode(), "zwei ü".encode("latin-1"), "три à".encode()):
            assert client.get("/v1/models", headers={b"authorization": b"Bearer " + known}).status_code == 200
            assert client.get("/v1/models", headers={b"x-api-key": known}).status_code == 200
        assert error_of(client.get("/v1/models", headers={b"x-api-key": "zwei u".encode("utf-16")}), 401)
        assert error_of(client.get("/openapi.json"), 401)
        assert client.get("/openapi.json", headers={"x-api-key": "one"}).status_code == 200
        # Pages of the framework, which load programs from elsewhere.
        for path in ("/docs", "/redoc", "/docs/oauth2-redirect"):
            assert error_of(client.get(path, headers={"x-api-key": "one"}), 404)


def test_models_props_and_health(client: TestClient, engine: ScriptedEngine) -> None:
    for prefix in ("/v1", ""):
        models = client.get(f"{prefix}/models").json()["data"]
        assert [entry["id"] for entry in models] == ["demo", "alias"]
        assert models[0]["max_model_len"] == 512 and models[0]["meta"]["n_ctx_train"] > 0
        assert client.get(f"{prefix}/models/alias").json()["id"] == "alias"
        assert error_of(client.get(f"{prefix}/models/a/b"), 404)["code"] == "model_not_found"
    props = client.get("/props").json()
    assert props["default_generation_settings"]["n_ctx"] == 512 and props["total_slots"] == 4
    assert client.get("/health").json() == {"status": "ok"}
    engine.health = EngineHealth("failed", "out of luck")
    error = error_of(client.get("/health"), 503)
    assert error["message"] == "out of luck"
    engine.health = EngineHealth("starting")
    assert client.get("/health").json()["status"] == "starting"


def test_text_endpoints(client: TestClient, model: ServedModel) -> None:
    tokenizer = model.frontend.tokenizer
    special = tokenizer.special_texts[0]
    text = f"hello é{special}"
    parsed = client.post("/tokenize", json={"content": text}).json()["tokens"]
    assert parsed == tokenizer.encode(text, add_special=False, parse_special=True)
    plain = client.post("/tokenize", json={"content": text, "parse_special": False}).json()["tokens"]
    assert plain == tokenizer.encode(text, add_special=False, parse_special=False) != parsed
    pieces = client.post("/v1/tokenize", json={"content": "hello", "with_pieces": True}).json()["tokens"]
    assert "".join(token["piece"] for token in pieces) == "hello"
    assert client.post("/detokenize", json={"tokens": parsed}).json() == {"content": text}
    assert error_of(client.post("/detokenize", json={"tokens": [1 << 40]}), 400)["param"] == "tokens"
    assert error_of(client.post("/detokenize", json={"tokens": [1.0]}), 400)["param"] == "tokens[0]"
    template = model.frontend.template
    assert template is not None
    rendered = client.post("/apply-template", json={**CHAT, "temperature": 1}).json()["prompt"]
    assert rendered == template.render(CHAT["messages"], add_generation_prompt=True)


def test_paths_and_methods_that_do_not_exist_have_the_same_shape(client: TestClient) -> None:
    assert error_of(client.get("/nowhere"), 404)["type"] == "not_found_error"
    error_of(client.get("/v1/chat/completions"), 405)


@pytest.mark.parametrize("path", ["/health", "/props", "/v1/models", "/models/alias", "/openapi.json"])
def test_head_says_what_get_would(client: TestClient, path: str) -> None:
    whole, head = client.get(path), client.head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(whole.content))


def test_the_openapi_page_shows_typed_bodies(client: TestClient) -> None:
    page = client.get("/openapi.json").json()
    schemas = page["components"]["schemas"]
    for path in GENERATING:
        content = page["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        name = content["schema"]["$ref"].rsplit("/", 1)[1]
        assert "temperature" in schemas[name]["properties"]
    assert "$defs" not in str(page)
