"""What clients see of the prompt cache: the OpenAI SDK and plain HTTP against a live server with the demo model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import httpx2 as httpx
import openai
import pytest

from ninfer.config.engine_options import EngineOptions
from ninfer.demo import HYBRID_DIRECTORY
from ninfer.engine.engine import load_model
from ninfer.engine.service import EngineService
from ninfer.serving.app import create_app
from ninfer.serving.event_router import EventRouter
from ninfer.serving.info_answers import SlotListAnswer
from ninfer.serving.served_model import ServedModel
from ninfer.serving.serving_options import ServingOptions
from tests.python.serving.event_stream import stream_chunks
from tests.python.serving.live_server import serving

SYSTEM = {"role": "system", "content": "you answer in few words and never guess what was not said before."}
OPTIONS: dict[str, Any] = {"threads": 1, "max_context": 1024, "kv_capacity": 8192}
# The most that a request may compute beyond the ideal.
SLACK = 16


class Site:
    """A live server whose cache is empty at first."""

    def __init__(self, engine: EngineService, port: int) -> None:
        self.engine = engine
        self.port = port
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}")

    def chat(self, messages: list[dict[str, str]], **fields: Any) -> dict[str, Any]:
        body = {"messages": messages, "temperature": 0, "max_tokens": 24, **fields}
        answer = self.http.post("/v1/chat/completions", json=body)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        cached = found["usage"]["prompt_tokens_details"]["cached_tokens"]
        timings = found["timings"]
        assert cached == timings["cache_n"] == found["usage"]["prompt_tokens"] - timings["prompt_n"]
        assert cached == found["reuse"]["frontier"]
        return found

    def slots(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.http.get("/slots").json()
        SlotListAnswer.model_validate(found)
        return found


@pytest.fixture
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    more = getattr(request, "param", {})
    loaded = load_model(HYBRID_DIRECTORY, EngineOptions(**{**OPTIONS, **more}), datetime.now)
    router = EventRouter()
    engine = EngineService(loaded, max_queued=64, hand_over=router.hand_over)
    engine.start()
    options = ServingOptions(served_model_names=("demo",))
    app = create_app(engine, router, ServedModel.of(loaded), options)
    with serving(app, options, lambda: engine.stop(5)) as port:
        found = Site(engine, port)
        yield found
        found.http.close()
    loaded.program.check_invariants()


def said(answer: dict[str, Any]) -> str:
    text: str = answer["choices"][0]["message"]["content"]
    return text


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def test_the_next_turn_and_the_same_again_compute_little(site: Site) -> None:
    first = [SYSTEM, user("my name is Karin.")]
    cold = site.chat(first)
    assert cold["reuse"]["source"] == "root"
    again = site.chat(first)
    assert said(again) == said(cold)
    assert again["timings"]["prompt_n"] <= 1 + SLACK
    assert again["reuse"]["source"] == "device"
    second = [*first, assistant(said(cold)), user("what is my name?")]
    warm = site.chat(second)
    assert warm["timings"]["cache_n"] >= cold["usage"]["prompt_tokens"] - SLACK
    uncached = site.chat(second, cache_prompt=False)
    assert uncached["reuse"] == {"source": "root", "path": "root", "frontier": 0, "reason": "disabled"}
    assert said(uncached) == said(warm)


def test_the_sdk_and_streams_tell_the_same(site: Site) -> None:
    messages: Any = [SYSTEM, user("what is 12 plus 30?")]
    site.chat(messages)
    with openai.OpenAI(base_url=f"http://127.0.0.1:{site.port}/v1", api_key="none", max_retries=0) as client:
        answer = client.chat.completions.create(model="demo", messages=messages, temperature=0)
    assert answer.usage is not None and answer.usage.prompt_tokens_details is not None
    cached = answer.usage.prompt_tokens_details.cached_tokens
    assert cached is not None and cached >= answer.usage.prompt_tokens - 1 - SLACK
    body = {"messages": messages, "temperature": 0, "stream": True, "return_progress": True}
    response = site.http.post("/v1/chat/completions", json=body)
    chunks = stream_chunks(response.text)
    [last] = [chunk for chunk in chunks if chunk["choices"] and chunk["choices"][0]["finish_reason"]]
    assert last["reuse"]["frontier"] == last["timings"]["cache_n"] == cached
    progress = [chunk["prompt_progress"] for chunk in chunks if chunk.get("prompt_progress")]
    assert progress[-1]["cache"] == cached
    native = site.http.post("/completion", json={"prompt": list(range(40, 140)), "n_predict": 2}).json()
    repeated = site.http.post("/completion", json={"prompt": list(range(40, 140)), "n_predict": 2}).json()
    assert (native["tokens_cached"], repeated["tokens_cached"]) == (0, 99)
    assert repeated["tokens"] == native["tokens"]


@pytest.mark.parametrize("site", [{"max_context": 16384, "kv_capacity": 65536, "prefill_chunk": 128}], indirect=True)
@pytest.mark.parametrize("percent", [10, 50, 90])
def test_who_left_during_the_prefill_goes_on_from_there(site: Site, percent: int) -> None:
    body = {"messages": [user("repeat after me: lamp river soup piano. " * 600)], "max_tokens": 4}
    processed = total = 0
    with site.http.stream(
        "POST", "/v1/chat/completions", json={**body, "stream": True, "return_progress": True}
    ) as response:
        for line in response.iter_lines():
            if "prompt_progress" in line:
                progress = json.loads(line.removeprefix("data: "))["prompt_progress"]
                processed, total = progress["processed"], progress["total"]
            if total and processed * 100 >= percent * total:
                break
    assert processed < total, "it left before the end"
    again = site.chat(**body)
    # Up to one more unit was computed before the server noticed, or several on a busy machine.
    assert again["timings"]["cache_n"] >= processed
    assert again["timings"]["cache_n"] + again["timings"]["prompt_n"] == total
    assert said(again) == said(site.chat(**body, cache_prompt=False))


def test_what_is_disabled_leaves_nothing(site: Site) -> None:
    before = site.engine.snapshot()
    for _ in range(2):
        assert site.chat([SYSTEM, user("hello.")], cache_prompt=False)["timings"]["cache_n"] == 0
    assert site.slots() == []
    assert site.engine.catalog(10).captures_taken == 0
    assert site.engine.snapshot().pages_free == before.pages_free


@pytest.mark.parametrize("site", [{"context_cache": False}], indirect=True)
def test_a_server_without_cache_keeps_nothing(site: Site) -> None:
    for _ in range(2):
        found = site.chat([SYSTEM, user("hello.")])
        assert found["timings"]["cache_n"] == 0
        assert found["reuse"] == {"source": "root", "path": "root", "frontier": 0, "reason": "disabled"}
    assert site.slots() == []
    assert site.engine.snapshot().pages_free == site.engine.snapshot().pages_total


def test_salts_separate_unless_they_name_a_session(site: Site) -> None:
    messages = [SYSTEM, user("the code is seven.")]
    site.chat(messages, cache_salt="one")
    other = site.chat(messages, cache_salt="two")
    assert other["timings"]["cache_n"] == 0
    assert other["reuse"]["reason"] == "no_match", "what others ask under their salts is not told"
    assert site.chat(messages)["timings"]["cache_n"] == 0
    assert site.chat(messages, cache_salt="four")["reuse"]["reason"] == "salt"
    assert site.chat(messages, cache_salt="one")["timings"]["cache_n"] > 0
    shared = site.chat(messages, cache_salt="three", cache_sharing=True)
    assert shared["timings"]["cache_n"] > 0
    assert "three" in [slot["session"] for slot in site.slots()]


def test_a_session_has_its_slot(site: Site) -> None:
    messages = [SYSTEM, user("my name is Karin.")]
    answer = site.chat(messages, session_id="mine")
    [slot] = [slot for slot in site.slots() if slot["session"] == "mine"]
    assert slot["state"] == "idle" and slot["retention"] == "live_session"
    assert "session_endpoint" in slot["checkpoints"]
    assert slot["n_tokens"] >= answer["usage"]["prompt_tokens"]
    assert slot["bytes"]["device"] > 0
    body = {"messages": [*messages, assistant(said(answer)), user("what is my name?")], "max_tokens": 8}
    site.http.post("/v1/chat/completions", json=body, headers={"x-session-id": "mine"}).raise_for_status()
    assert [slot["session"] for slot in site.slots()].count("mine") == 1


def test_two_clients_never_see_each_others_words(site: Site) -> None:
    """Side by side, turn by turn: each gets what it gets alone, and nothing of the other's."""

    def talk(name: str, salt: str | None, **fields: Any) -> list[str]:
        messages, answers = [SYSTEM], []
        for text in (f"my name is {name}.", "what is my name?", "what is 12 plus 30?"):
            messages = [*messages, user(text)]
            answers.append(said(site.chat(messages, cache_salt=salt, **fields)))
            messages = [*messages, assistant(answers[-1])]
        return answers

    alone = {name: talk(name, None, cache_prompt=False) for name in ("Karin", "Oskar")}
    for salts in ((None, None), ("a", "b")):
        with ThreadPoolExecutor(2) as pool:
            both = list(pool.map(talk, alone, salts))
        for name, answers in zip(alone, both, strict=True):
            assert answers == alone[name]
            (other,) = alone.keys() - {name}
            assert not any(other in answer for answer in answers)
