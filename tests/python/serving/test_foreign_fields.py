"""Fields of other servers: defaults that programs only repeat are accepted, and what changes an answer is refused."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types import completion_create_params as completion_params
from openai.types.chat import completion_create_params as chat_params
from starlette.testclient import TestClient

from ninfer.serving.foreign_fields import FOREIGN_FIELDS
from ninfer.serving.openai.wire import ChatBody, CompletionBody
from ninfer.serving.served_model import ServedModel
from tests.python.serving.scripted_engine import ScriptedEngine, answer_events

GENERATING: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hello."}]},
    "/v1/completions": {"prompt": "hello"},
    "/completion": {"prompt": "hello"},
}
ORDER = ["penalties", "temperature", "top_k", "top_p", "min_p"]


@pytest.fixture(autouse=True)
def _talking(engine: ScriptedEngine, model: ServedModel) -> None:
    engine.answer = answer_events(model.frontend.tokenizer, "hello")


def param_of_refusal(client: TestClient, path: str, fields: dict[str, Any]) -> str | None:
    """None if it is answered."""
    response = client.post(path, json={**GENERATING[path], **fields})
    if response.status_code == 200:
        return None
    assert response.status_code == 400, response.text
    error = response.json()["error"]
    assert error["message"].startswith(f"{error['param']}: ") and "no such field" not in error["message"], error
    return str(error["param"])


@pytest.mark.parametrize("path", GENERATING)
@pytest.mark.parametrize(
    ("name", "neutral", "other"),
    [
        ("samplers", ORDER, ["top_k", "temperature"]),
        ("samplers", ORDER, []),
        ("top_n_sigma", -1, 1.5),
        ("t_max_predict_ms", 0, 200),
        ("response_fields", [], ["content"]),
        ("post_sampling_probs", False, True),
        ("min_keep", 0, 2),
        ("grammar", "", 'root ::= "a"'),
        ("mirostat", 0, 2),
        ("typ_p", 1, 0.5),
        ("reasoning_format", "auto", "none"),
    ],
)
def test_what_would_change_the_answer_is_refused_and_a_default_is_not(
    client: TestClient, path: str, name: str, neutral: Any, other: Any
) -> None:
    assert param_of_refusal(client, path, {name: neutral}) is None
    assert param_of_refusal(client, path, {name: None}) is None
    assert param_of_refusal(client, path, {name: other}) == name


@pytest.mark.parametrize("path", GENERATING)
def test_what_changes_no_answer_is_accepted(client: TestClient, path: str) -> None:
    fields = {"timings_per_token": True, "backend_sampling": False, "id_slot": 3, "n_keep": 17, "dry_base": 1.75}
    assert param_of_refusal(client, path, fields) is None


@pytest.mark.parametrize("path", GENERATING)
def test_penalties_look_at_all_tokens_and_a_window_is_refused_where_it_counts(client: TestClient, path: str) -> None:
    for harmless in ({"repeat_last_n": 64}, {"repeat_last_n": -1, "repeat_penalty": 1.5}):
        assert param_of_refusal(client, path, harmless) is None
    window = {"repeat_last_n": 64, "repeat_penalty": 1.5}
    assert param_of_refusal(client, path, window) == "repeat_last_n"


@pytest.mark.parametrize("path", GENERATING)
def test_a_seed_of_minus_one_is_none(client: TestClient, engine: ScriptedEngine, path: str) -> None:
    assert param_of_refusal(client, path, {"seed": -1}) is None
    assert param_of_refusal(client, path, {"seed": -2}) is None
    assert [request.params.seed for request in engine.requests.values()] == [None, -2]


def test_the_native_endpoint_knows_the_other_names_of_its_fields(client: TestClient, engine: ScriptedEngine) -> None:
    assert param_of_refusal(client, "/completion", {"logprobs": 3, "max_completion_tokens": 5}) is None
    [request] = engine.requests.values()
    assert (request.params.logprobs, request.params.max_tokens) == (3, 5)


def test_the_tokens_of_a_native_answer_are_always_there(client: TestClient) -> None:
    for wanted in (True, False, None):
        assert client.post("/completion", json={"prompt": "zero", "return_tokens": wanted}).json()["tokens"]


HINTS: dict[str, Any] = {
    "verbosity": "low",
    "prediction": {"type": "content", "content": "hello"},
    "prompt_cache_key": "key",
    "prompt_cache_options": {"mode": "explicit"},
    "prompt_cache_retention": "24h",
    "safety_identifier": "somebody",
    "service_tier": "flex",
    "store": False,
    "metadata": {"a": "b"},
    "user": "somebody",
    "parallel_tool_calls": True,
    "modalities": ["text"],
}


def test_hints_of_the_sdk_are_accepted(client: TestClient) -> None:
    assert param_of_refusal(client, "/v1/chat/completions", HINTS) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("audio", {"voice": "alloy", "format": "wav"}),
        ("function_call", "auto"),
        ("functions", [{"name": "clock"}]),
        ("moderation", {"model": "omni"}),
        ("web_search_options", {}),
    ],
)
def test_what_the_sdk_may_ask_for_and_nobody_does_here_is_refused_by_name(
    client: TestClient, name: str, value: Any
) -> None:
    assert param_of_refusal(client, "/v1/chat/completions", {name: value}) == name


def test_every_field_of_the_sdk_is_known() -> None:
    chat = chat_params.CompletionCreateParamsStreaming.__annotations__
    assert chat.keys() - ChatBody.model_fields.keys() - FOREIGN_FIELDS == set()
    text = completion_params.CompletionCreateParamsStreaming.__annotations__
    assert text.keys() - CompletionBody.model_fields.keys() == set()
