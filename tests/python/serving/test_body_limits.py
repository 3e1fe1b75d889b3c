"""What a body may hold: more is refused by name, and before it costs anything."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import orjson
import pytest
from starlette.testclient import TestClient

from ninfer.engine.events import Cancelled
from ninfer.serving.app import create_app
from ninfer.serving.http_errors import ApiError
from ninfer.serving.json_size import MAX_CONTAINERS, MAX_VALUES, check_json_size
from ninfer.serving.openai.wire import MAX_MESSAGES
from ninfer.serving.served_model import ServedModel
from ninfer.serving.serving_options import ServingOptions
from ninfer.serving.text_wire import MAX_TEXT_TOKENS
from ninfer.serving.wire import MAX_BIASES, MAX_STOP_TOKEN_IDS
from tests.fixtures.seed import SEED
from tests.python.serving.scripted_engine import ScriptedEngine, answer_events

CHAT = "/v1/chat/completions"
GENERATING = (CHAT, "/v1/completions", "/completion")
USER = {"role": "user", "content": "hi"}
FIELDS: dict[str, dict[str, Any]] = {
    CHAT: {"messages": [USER]},
    "/v1/completions": {"prompt": "hi"},
    "/completion": {"prompt": "hi"},
    "/tokenize": {"content": "hi"},
}


@pytest.fixture
def options() -> ServingOptions:
    return ServingOptions(served_model_names=("demo",), max_body_mib=16)


def refusal(client: TestClient, path: str, fields: dict[str, Any]) -> dict[str, Any]:
    response = client.post(path, content=orjson.dumps({**FIELDS.get(path, {}), **fields}))
    assert response.status_code == 400, response.text[:1000]
    error: dict[str, Any] = response.json()["error"]
    return error


def biases(count: int) -> dict[str, int]:
    return {str(token): 1 for token in range(count)}


@pytest.mark.parametrize(
    ("path", "name", "most", "value"),
    [(path, "stop_token_ids", MAX_STOP_TOKEN_IDS, lambda count: [40] * count) for path in GENERATING]
    + [(path, "logit_bias", MAX_BIASES, biases) for path in GENERATING]
    + [("/completion", "logit_bias", MAX_BIASES, lambda count: [[40, 1]] * count)],
)
def test_ids_and_biases_are_few(
    client: TestClient, engine: ScriptedEngine, path: str, name: str, most: int, value: Any
) -> None:
    engine.answer = [Cancelled("not of interest")]
    error = refusal(client, path, {name: value(most + 1)})
    assert error["param"] == name and str(most) in error["message"] and str(most + 1) in error["message"]
    assert not engine.requests
    assert client.post(path, json={**FIELDS[path], name: value(most)}).status_code == 503
    assert len(engine.requests) == 1


def test_messages_are_limited(client: TestClient) -> None:
    error = refusal(client, CHAT, {"messages": [USER] * (MAX_MESSAGES + 1)})
    assert error["param"] == "messages" and str(MAX_MESSAGES) in error["message"]
    assert refusal(client, CHAT, {"messages": [USER] * MAX_MESSAGES})["param"] == "prompt", "they only do not fit"


@pytest.mark.parametrize("path", FIELDS)
@pytest.mark.parametrize(
    ("what", "value"),
    [
        ("arrays and objects", [[]] * MAX_CONTAINERS),
        ("arrays and objects", [{}] * MAX_CONTAINERS),
        ("values", ["a"] * (MAX_VALUES + 2)),
    ],
)
def test_a_body_of_too_many_values_is_refused_before_it_is_parsed(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, path: str, what: str, value: Any
) -> None:
    monkeypatch.setattr("ninfer.serving.decode.orjson.loads", lambda body: pytest.fail("it was parsed"))
    error = refusal(client, path, {"metadata": value})
    assert error["code"] == "too_many_values" and what in error["message"]


def test_values_are_counted_outside_of_strings_only() -> None:
    print(f"NINFER_TEST_SEED={SEED}")
    dice = random.Random(SEED)
    for _ in range(20):
        text = "".join(dice.choices('[]{},\\"a\né', k=dice.randrange(MAX_CONTAINERS, 2 * MAX_CONTAINERS)))
        check_json_size(json.dumps({text: text, "a": [{}]}, ensure_ascii=dice.random() < 0.5).encode())
    check_json_size(orjson.dumps([[]] * (MAX_CONTAINERS - 1)))
    with pytest.raises(ApiError, match=f"{MAX_CONTAINERS + 1} arrays"):
        check_json_size(orjson.dumps(['"[\\', *([[]] * MAX_CONTAINERS)]))
    check_json_size(orjson.dumps([1] * (MAX_VALUES + 1)))


@pytest.mark.parametrize("path", ["/v1/completions", "/completion"])
def test_the_length_of_an_id_prompt_is_checked_before_its_ids(
    client: TestClient, model: ServedModel, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    count = 1_000_000
    monkeypatch.setattr(type(model.frontend.tokenizer), "has_token", lambda *_: pytest.fail("an id was looked at"))
    error = refusal(client, path, {"prompt": [40] * (count - 1) + ["x"]})
    assert error["param"] == "prompt" and str(count) in error["message"] and str(model.max_context) in error["message"]


@pytest.mark.parametrize("path", GENERATING)
def test_a_text_that_cannot_fit_is_not_tokenised(
    client: TestClient, model: ServedModel, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    tokenizer = model.frontend.tokenizer
    longest = max(len(tokenizer.token_bytes(token)) for token in range(tokenizer.vocab_size))
    text = "a" * (model.max_context * longest * 4 + 1)
    for name in ("encode", "special_spans"):
        monkeypatch.setattr(type(tokenizer), name, lambda *_, **__: pytest.fail("it was tokenised"))
    error = refusal(client, path, {"messages": [{**USER, "content": text}]} if path == CHAT else {"prompt": text})
    assert error["param"] == "prompt" and "at least" in error["message"] and str(model.max_context) in error["message"]


def test_a_text_has_at_least_as_many_tokens_as_is_said(model: ServedModel) -> None:
    tokenizer = model.frontend.tokenizer
    dice = random.Random(SEED)
    print(f"NINFER_TEST_SEED={SEED}")
    texts = ["\u1fbe\u0308\u0301" * 1000, " " * 1000, "", *tokenizer.special_texts]
    texts += ["".join(dice.choices("ab \n\u1fbe\u0308\u0301\u212aé😀", k=1000)) for _ in range(20)]
    for text in texts:
        assert tokenizer.fewest_tokens(text, 10) <= len(tokenizer.encode(text, add_special=False, parse_special=True))
    assert tokenizer.fewest_tokens("a" * 100_000, 500) > 500


def test_of_a_text_that_is_much_too_long_only_a_part_is_tokenised(
    model: ServedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(f"NINFER_TEST_SEED={SEED}")
    dice = random.Random(SEED)
    tokenizer = model.frontend.tokenizer
    seen: list[int] = []
    original = type(tokenizer).encode

    def noting(self: Any, text: str, **more: Any) -> list[int]:
        seen.append(len(text))
        return original(self, text, **more)

    monkeypatch.setattr(type(tokenizer), "encode", noting)
    enough = 20_000
    words = ("one", "two", "a", "é", "\n", "<", "functions")
    text = " ".join(dice.choices(words, k=300_000))
    counts = [tokenizer.fewest_tokens(text, 20_000), sum(seen)]
    assert enough < counts[0] < len(original(tokenizer, text, add_special=False, parse_special=True))
    assert counts[1] < len(text) / 2
    seen.clear()
    tokenizer.fewest_tokens(text, len(text) // 8 + 1)
    assert not seen, "the text is short for so many tokens"
    # Cut between words, the parts have the tokens of the whole.
    monkeypatch.setattr("ninfer.frontend.tokenizer._USUAL_CHARACTERS", 0)
    counted = tokenizer.fewest_tokens(text, 10**6)
    exact = len(original(tokenizer, text[: sum(seen)], add_special=False, parse_special=True))
    assert len(seen) > 3 and counted == exact


def test_texts_and_ids_of_text_endpoints_are_limited(client: TestClient, model: ServedModel) -> None:
    most = model.most_text_bytes
    error = refusal(client, "/tokenize", {"content": "é" * (most // 2 + 1)})
    assert error["param"] == "content" and str(most) in error["message"]
    error = refusal(client, "/detokenize", {"tokens": [40] * (MAX_TEXT_TOKENS + 1)})
    assert error["param"] == "tokens" and str(MAX_TEXT_TOKENS) in error["message"]


@pytest.mark.parametrize("with_pieces", [False, True])
def test_a_long_text_comes_back_whole(client: TestClient, model: ServedModel, with_pieces: bool) -> None:
    tokenizer = model.frontend.tokenizer
    text = "one two, é 😀 " * 5000
    ids = tokenizer.encode(text, add_special=False, parse_special=True)
    tokens = client.post("/tokenize", json={"content": text, "with_pieces": with_pieces}).json()["tokens"]
    if with_pieces:
        pieces = b"".join(
            bytes(token["piece"]) if isinstance(token["piece"], list) else token["piece"].encode() for token in tokens
        )
        assert pieces.decode() == text
        tokens = [token["id"] for token in tokens]
    assert tokens == ids and len(ids) > 2 * 4096


def test_an_answer_over_the_limit_is_refused(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ninfer.serving.server.MAX_ANSWER_BYTES", 100)
    error = refusal(client, "/tokenize", {"content": "one two three " * 10})
    assert error["code"] == "answer_too_large" and "100" in error["message"]


def test_a_request_came_when_its_headers_came(engine: ScriptedEngine, model: ServedModel) -> None:
    """The time of its body and of its preparation counts."""
    options = ServingOptions(served_model_names=("demo",), request_timeout_s=90.0)
    engine.answer = answer_events(model.frontend.tokenizer, "hello")
    submitted: list[float] = []
    submit = engine.submit

    def noting(request: Any) -> int:
        submitted.append(time.monotonic())
        return submit(request)

    engine.submit = noting  # type: ignore[method-assign]  # the moment is what the test wants
    encode_seconds = 0.2
    original = type(model.frontend.tokenizer).encode

    def slow(self: Any, *given: Any, **more: Any) -> list[int]:
        time.sleep(encode_seconds)
        return original(self, *given, **more)

    with pytest.MonkeyPatch.context() as patch, TestClient(create_app(engine, engine.router, model, options)) as client:
        patch.setattr(type(model.frontend.tokenizer), "encode", slow)
        assert client.post("/completion", json={"prompt": "hi"}).status_code == 200
    [request] = engine.requests.values()
    assert request.arrived is not None and submitted[0] - request.arrived >= encode_seconds
