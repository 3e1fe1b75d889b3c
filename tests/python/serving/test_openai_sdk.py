"""The OpenAI SDK against a live server with the demo model."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import openai
import pytest

import ninfer
from ninfer.config.engine_options import EngineOptions
from ninfer.demo import HYBRID_DIRECTORY
from ninfer.engine.engine import load_model
from ninfer.engine.service import EngineService
from ninfer.serving.app import create_app
from ninfer.serving.event_router import EventRouter
from ninfer.serving.served_model import ServedModel
from ninfer.serving.serving_options import ServingOptions
from tests.python.serving.live_server import serving, wait_until

SUM = [{"role": "user", "content": "what is 12 plus 30?"}]
OPTIONS: dict[str, Any] = {"threads": 2, "max_context": 1024, "kv_capacity": 8192}


@pytest.fixture(scope="module")
def service() -> Iterator[tuple[EngineService, int]]:
    loaded = load_model(HYBRID_DIRECTORY, EngineOptions(**OPTIONS), datetime.now)
    router = EventRouter()
    engine = EngineService(loaded, max_queued=64, hand_over=router.hand_over)
    engine.start()
    options = ServingOptions(served_model_names=("demo",), api_keys=frozenset({"key"}))
    app = create_app(engine, router, ServedModel.of(loaded), options)
    with serving(app, options, lambda: engine.stop(5)) as port:
        yield engine, port
    assert engine.health.state == "stopped"


@pytest.fixture
def client(service: tuple[EngineService, int]) -> Iterator[openai.OpenAI]:
    engine, port = service
    with openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="key", max_retries=0) as client:
        yield client
    wait_until(lambda: engine.snapshot().running == engine.snapshot().queued == 0)
    assert engine.snapshot().lanes_open == 0


def ask(client: openai.OpenAI, **fields: Any) -> Any:
    return client.chat.completions.create(**{"model": "demo", "messages": SUM, "temperature": 0, **fields})


def test_an_answer_is_that_of_the_engine_in_this_process(client: openai.OpenAI) -> None:
    answer = ask(client)
    message = answer.choices[0].message
    assert message.content == "12 plus 30 is 42."
    assert answer.choices[0].finish_reason == "stop"
    with ninfer.load(HYBRID_DIRECTORY, **OPTIONS) as engine:
        _, prompt = engine.chat_prompt_ids(SUM)
        alone = engine.generate(prompt, temperature=0)
    assert alone.text == f"{message.reasoning_content}\n</think>\n\n{message.content}"
    assert answer.usage.prompt_tokens == len(prompt) == answer.timings["prompt_n"]
    assert answer.usage.completion_tokens == len(alone.token_ids)
    assert answer.usage.prompt_tokens_details.cached_tokens == 0


def test_a_stream_says_the_same(client: openai.OpenAI) -> None:
    whole = ask(client)
    chunks = list(ask(client, stream=True, stream_options={"include_usage": True}))
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == whole.choices[0].message.content
    reasoning = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
    assert reasoning == whole.choices[0].message.reasoning_content
    assert chunks[-1].usage == whole.usage


def test_eight_at_once_answer_as_one_alone(client: openai.OpenAI) -> None:
    seeds = list(range(8))

    def answer(seed: int) -> Any:
        return ask(client, temperature=5, seed=seed, max_tokens=40, logprobs=True).choices[0]

    alone = [answer(seed) for seed in seeds]
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(answer, seeds))
    assert together == alone
    assert len({choice.message.model_dump_json() for choice in alone}) > 1


def test_stop_strings_limits_and_bias(client: openai.OpenAI) -> None:
    stopped = ask(client, stop=" is", extra_body={"enable_thinking": False}).choices[0]
    assert (stopped.message.content, stopped.finish_reason) == ("12 plus 30", "stop")
    limited = ask(client, max_tokens=3)
    assert (limited.choices[0].finish_reason, limited.usage.completion_tokens) == ("length", 3)
    assert limited.timings["max_tokens"] == 3
    forced = ask(client, max_completion_tokens=2, logit_bias={"70": 100}, logprobs=True, top_logprobs=1).choices[0]
    assert all(entry.id == 70 for entry in forced.logprobs.content)


def test_completions(client: openai.OpenAI) -> None:
    answer = client.completions.create(model="demo", prompt="one two", max_tokens=4, temperature=0, logprobs=2)
    assert answer.usage is not None and answer.usage.completion_tokens == 4
    chunks = client.completions.create(model="demo", prompt="one two", max_tokens=4, temperature=0, stream=True)
    assert "".join(chunk.choices[0].text for chunk in chunks) == answer.choices[0].text


def test_errors_are_the_classes_of_the_sdk(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as too_long:
        ask(client, messages=[{"role": "user", "content": "one two three " * 1000}])
    assert "1024" in str(too_long.value)
    with pytest.raises(openai.BadRequestError) as several:
        ask(client, n=2)
    assert several.value.param == "n"
    with pytest.raises(openai.NotFoundError):
        ask(client, model="other")
    with pytest.raises(openai.AuthenticationError):
        ask(client.with_options(api_key="wrong"))


def test_a_client_that_leaves_a_stream_frees_its_lane(
    client: openai.OpenAI, service: tuple[EngineService, int]
) -> None:
    engine, _ = service
    stream = ask(client, stream=True, extra_body={"ignore_eos": True}, max_tokens=900)
    # The first chunk only says that the request was taken.
    chunks = iter(stream)
    next(chunks)
    next(chunks)
    assert engine.snapshot().running == 1
    stream.close()
    wait_until(lambda: engine.snapshot().running == 0, 2)


def test_models(client: openai.OpenAI) -> None:
    [model] = client.models.list().data
    assert model.id == "demo" and model.model_extra is not None and model.model_extra["max_model_len"] == 1024
