"""A flood of text requests is refused beyond a bound, and delays nobody who generates."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import httpx2
import pytest

from ninfer.serving.app import create_app
from ninfer.serving.served_model import ServedModel
from ninfer.serving.serving_options import ServingOptions
from ninfer.serving.text_workers import MAX_WAITING
from tests.python.serving.live_server import serving, wait_until
from tests.python.serving.scripted_engine import ScriptedEngine, answer_events

MORE = 8
BODIES = {
    "/tokenize": {"content": "hello"},
    "/detokenize": {"tokens": [40]},
    "/apply-template": {"messages": [{"role": "user", "content": "hello"}]},
}


@pytest.fixture
def client(engine: ScriptedEngine, model: ServedModel) -> Iterator[httpx2.Client]:
    options = ServingOptions(served_model_names=("demo",))
    engine.answer = answer_events(model.frontend.tokenizer, "hello")
    with (
        serving(create_app(engine, engine.router, model, options), options) as port,
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
    ):
        yield client


@pytest.mark.parametrize("path", BODIES)
def test_a_flood_is_refused_and_generation_goes_on(
    client: httpx2.Client, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    go_on = threading.Event()

    def slow(*_: object) -> dict[str, int]:
        assert go_on.wait(60)
        return {"slow": 1}

    for name in ("_tokenized", "_detokenized", "_rendered"):
        monkeypatch.setattr(f"ninfer.serving.text_routes.{name}", slow)
    with ThreadPoolExecutor(MAX_WAITING + MORE) as threads:
        try:
            jobs = [threads.submit(client.post, path, json=BODIES[path]) for _ in range(MAX_WAITING + MORE)]
            wait_until(lambda: sum(job.done() for job in jobs) == MORE, 60)
            assert client.post("/completion", json={"prompt": "hi"}).status_code == 200
        finally:
            go_on.set()
        answers = [job.result() for job in jobs]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert len(refused) == MORE
    for answer in refused:
        assert answer.headers["retry-after"] == "1" and answer.json()["error"]["code"] == "queue_full"
    assert [answer.json() for answer in answers if answer not in refused] == [{"slow": 1}] * MAX_WAITING
    # Every place is free again.
    again: list[Future[httpx2.Response]] = []
    with ThreadPoolExecutor(MAX_WAITING) as threads:
        again = [threads.submit(client.post, path, json=BODIES[path]) for _ in range(MAX_WAITING)]
    assert {job.result().status_code for job in again} == {200}


def test_who_leaves_gives_the_place_back(client: httpx2.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    begun: list[int] = []

    def slow(*_: object) -> dict[str, int]:
        begun.append(1)
        assert go_on.wait(60)
        return {"slow": 1}

    monkeypatch.setattr("ninfer.serving.text_routes._tokenized", slow)

    def leave() -> None:
        with pytest.raises(httpx2.ReadTimeout):
            client.post("/tokenize", json=BODIES["/tokenize"], timeout=0.5)

    with ThreadPoolExecutor(MAX_WAITING) as threads:
        list(threads.map(lambda _: leave(), range(MAX_WAITING)))
    # The server has seen them leave once requests that came later have been answered.
    for _ in range(5):
        assert client.get("/health").status_code == 200
    # All have left; the one that had begun still holds the thread, the others are gone without ever beginning.
    with ThreadPoolExecutor(MAX_WAITING) as threads:
        later = threads.submit(client.post, "/tokenize", json=BODIES["/tokenize"])
        wait_until(lambda: begun, 60)
        go_on.set()
        assert later.result().status_code == 200
    assert len(begun) == 2
