"""More of the OpenAI SDK against a live server: every field of the contract, and clients that leave in every state."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import datetime
from typing import Any

import openai
import pytest

from ninfer.config.engine_options import EngineOptions
from ninfer.demo import HYBRID_DIRECTORY
from ninfer.engine.engine import load_model
from ninfer.engine.request import RequestState
from ninfer.engine.service import EngineService
from ninfer.serving.app import create_app
from ninfer.serving.event_router import EventRouter
from ninfer.serving.served_model import ServedModel
from ninfer.serving.serving_options import ServingOptions
from tests.python.serving.live_server import serving, wait_until

SUM = [{"role": "user", "content": "what is 12 plus 30?"}]
CONTEXT = 16_384
PATHS = ("/v1/chat/completions", "/v1/completions", "/completion")


@pytest.fixture(scope="module")
def service() -> Iterator[tuple[EngineService, int]]:
    # One lane makes a second request wait; the smallest chunk makes a long prompt take hundreds of units.
    options = EngineOptions(
        threads=2, max_context=CONTEXT, kv_capacity=4 * CONTEXT, max_concurrency=1, prefill_chunk=64
    )
    loaded = load_model(HYBRID_DIRECTORY, options, datetime.now)
    router = EventRouter()
    engine = EngineService(loaded, max_queued=64, hand_over=router.hand_over)
    engine.start()
    serving_options = ServingOptions(served_model_names=("demo",))
    app = create_app(engine, router, ServedModel.of(loaded), serving_options)
    with serving(app, serving_options, lambda: engine.stop(5)) as port:
        yield engine, port


@pytest.fixture
def client(service: tuple[EngineService, int]) -> Iterator[openai.OpenAI]:
    engine, port = service
    with openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0) as client:
        yield client
    wait_until(lambda: engine.snapshot().running == engine.snapshot().queued == 0, 60)
    assert engine.snapshot().lanes_open == 0


def ask(client: openai.OpenAI, **fields: Any) -> Any:
    return client.chat.completions.create(**{"model": "demo", "messages": SUM, "max_tokens": 40, **fields})


@pytest.mark.parametrize("stream", [False, True])
def test_a_seed_repeats_an_answer_and_another_changes_it(client: openai.OpenAI, stream: bool) -> None:
    def text(seed: int) -> str:
        answer = ask(client, seed=seed, temperature=2, top_p=1, stream=stream, extra_body={"top_k": 0})
        if not stream:
            return str(answer.choices[0].message.model_dump_json())
        return "".join(chunk.choices[0].delta.model_dump_json() for chunk in answer if chunk.choices)

    assert text(1) == text(1)
    assert len({text(seed) for seed in range(1, 5)}) > 1


@pytest.mark.parametrize("stream", [False, True])
def test_logprobs_are_those_of_the_best_tokens_at_temperature_0(client: openai.OpenAI, stream: bool) -> None:
    answer = ask(client, temperature=0, logprobs=True, top_logprobs=3, stream=stream)
    choices = [chunk.choices[0] for chunk in answer if chunk.choices] if stream else answer.choices
    entries = [entry for choice in choices if choice.logprobs for entry in choice.logprobs.content]
    assert len(entries) >= 5
    for entry in entries:
        assert entry.logprob == max(top.logprob for top in entry.top_logprobs) <= 0
        assert len(entry.top_logprobs) == 3


def test_penalties_keep_tokens_from_coming_again(client: openai.OpenAI) -> None:
    def ids(**fields: Any) -> list[int]:
        entries = ask(client, temperature=0, logprobs=True, **fields).choices[0].logprobs.content
        return [entry.id for entry in entries]

    plain = ids(extra_body={"ignore_eos": True})
    assert len(set(plain)) < len(plain)
    strong: list[dict[str, Any]] = [
        {"presence_penalty": 2.0, "frequency_penalty": 2.0},
        {"extra_body": {"repeat_penalty": 3.0}},
        {"extra_body": {"repetition_penalty": 3.0}},
    ]
    for penalties in strong:
        body = {**penalties.pop("extra_body", {}), "ignore_eos": True}
        found = ids(**penalties, extra_body=body)
        assert len(set(found)) > len(set(plain)), (penalties, body)


def test_logit_bias_forbids_and_forces(client: openai.OpenAI) -> None:
    first = ask(client, temperature=0, logprobs=True, max_tokens=1).choices[0].logprobs.content[0].id
    never = ask(client, temperature=0, logprobs=True, max_tokens=1, logit_bias={str(first): -100})
    assert never.choices[0].logprobs.content[0].id != first
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, logit_bias={"1000000": 1})
    assert refused.value.param == "logit_bias"


def test_the_native_endpoint_names_the_stop_string_that_the_engine_met(client: openai.OpenAI) -> None:
    body = {"prompt": "one two three", "n_predict": 30, "temperature": 0, "ignore_eos": True}
    answer = client.post("/completion", body=body, cast_to=object)
    assert isinstance(answer, dict) and answer["stop_type"] == "limit" and answer["stopping_word"] == ""
    word = answer["content"][3:6]
    stopped = client.post("/completion", body={**body, "stop": ["\0never", word]}, cast_to=object)
    assert isinstance(stopped, dict) and (stopped["stop_type"], stopped["stopping_word"]) == ("word", word)
    assert stopped["content"] == answer["content"][: answer["content"].index(word)]


@pytest.mark.parametrize(
    "fields", [{"n": 2}, {"response_format": {"type": "json_object"}}, {"tool_choice": "required"}]
)
def test_what_is_not_served_is_named(client: openai.OpenAI, fields: dict[str, Any]) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, **fields)
    assert refused.value.param == next(iter(fields))


@pytest.mark.parametrize("fields", [{"n": 2}, {"best_of": 2}, {"echo": True}, {"suffix": "x"}])
def test_what_is_not_served_of_completions_is_named(client: openai.OpenAI, fields: dict[str, Any]) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.completions.create(model="demo", prompt="one", **fields)
    assert refused.value.param == next(iter(fields))


@pytest.mark.parametrize("path", PATHS)
def test_a_prompt_that_does_not_fit_is_refused_with_both_numbers(client: openai.OpenAI, path: str) -> None:
    words = "one two three " * CONTEXT
    body = {"messages": [{"role": "user", "content": words}]} if "chat" in path else {"prompt": words}
    with pytest.raises(openai.BadRequestError) as refused:
        client.post(path.removeprefix("/v1"), body=body, cast_to=object)
    numbers = [int(word.strip(",.")) for word in refused.value.message.split() if word.strip(",.").isdigit()]
    assert CONTEXT in numbers and max(numbers) > CONTEXT, refused.value.message


def raw(port: int, path: str, *, stream: bool, words: int) -> socket.socket:
    text = "one two " * words
    prompt = {"messages": [{"role": "user", "content": text}]} if "chat" in path else {"prompt": text}
    content = json.dumps({**prompt, "stream": stream, "ignore_eos": True, "max_tokens": 4000}).encode()
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (path.encode(), len(content))
    connection.sendall(head + content)
    return connection


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("how", ["close", "half-close"])
@pytest.mark.parametrize("state", [RequestState.QUEUED, RequestState.PREFILLING, RequestState.DECODING])
def test_leaving_in_every_state_frees_the_lane(
    service: tuple[EngineService, int], path: str, stream: bool, how: str, state: RequestState
) -> None:
    engine, port = service

    def states() -> list[RequestState]:
        return [request.state for request in engine.snapshot().requests]

    with ExitStack() as open_connections:

        def asked(path: str, stream: bool, words: int) -> socket.socket:
            return open_connections.enter_context(closing(raw(port, path, stream=stream, words=words)))

        others = 0
        if state is RequestState.QUEUED:
            others = 1
            asked("/completion", True, 5)
            wait_until(lambda: states() == [RequestState.DECODING], 60)
        leaving = asked(path, stream, 1500 if state is RequestState.PREFILLING else 5)
        wait_until(lambda: states()[others:] == [state], 60)
        if how == "half-close":
            leaving.shutdown(socket.SHUT_WR)
        else:
            leaving.close()
        wait_until(lambda: len(states()) == others, 60)
        assert states() == [RequestState.DECODING] * others, "somebody else's request was ended"


@pytest.mark.parametrize("fields", [{"top_p": 0}, {"extra_body": {"top_k": 1}}, {"extra_body": {"min_p": 1}}])
def test_the_narrowest_choice_is_the_best_token(client: openai.OpenAI, fields: dict[str, Any]) -> None:
    best = ask(client, temperature=0).choices[0].message
    assert ask(client, temperature=5, seed=1, **fields).choices[0].message == best
    assert ask(client, temperature=0, extra_body={"top_k": -1}).choices[0].message == best
