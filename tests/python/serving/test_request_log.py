"""Lines of the request log stay whole, whatever the disk does."""

from __future__ import annotations

import gc
import json
import os
import threading
from functools import partial
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from ninfer.serving.app import create_app
from ninfer.serving.background_writer import BackgroundWriter
from ninfer.serving.generation_request import PromptDigest
from ninfer.serving.observed_requests import ObservedRequests
from ninfer.serving.request_log import RequestLog, request_line, text_digest
from ninfer.serving.request_record import RequestRecord, begin_record
from ninfer.serving.served_model import ServedModel
from ninfer.serving.serving_options import ServingOptions
from ninfer.serving.shown_request import shown_endpoint
from tests.python.serving.scripted_engine import ScriptedEngine, answer_events


def test_a_torn_line_does_not_spoil_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "log"
    log = RequestLog(file)
    real = os.write
    room = [5, 0]

    def short_write(descriptor: int, data: bytes) -> int:
        return real(descriptor, data[: room.pop(0)]) if room else real(descriptor, data)

    monkeypatch.setattr(os, "write", short_write)
    for number in range(4):
        log(RequestRecord("GET", id=f"req-{number}"))
    log.close()
    torn, *whole = file.read_text("utf-8").splitlines()
    assert torn == '{"tim'
    assert [json.loads(line)["id"] for line in whole] == ["req-2", "req-3"]
    assert len(caplog.records) == 1 and "only a part of a line" in caplog.text


def test_two_logs_may_append_to_one_file(tmp_path: Path) -> None:
    file = tmp_path / "log"
    logs = [RequestLog(file), RequestLog(file)]
    for number in range(200):
        logs[number % 2](RequestRecord("GET", id=f"req-{number}"))
    for log in logs:
        log.close()
    ids = [json.loads(line)["id"] for line in file.read_text("utf-8").splitlines()]
    assert sorted(ids) == sorted(f"req-{number}" for number in range(200))


def test_digests_are_those_of_the_documentation() -> None:
    # printf 'salt' | sha256sum; printf '\1\0\0\0\0\1\0\0' | sha256sum
    assert text_digest("salt") == "63479ad69a090b25"
    assert PromptDigest.of([1, 256]) == PromptDigest(2, "242045e2f1bb3776")
    assert text_digest(None) is None


def test_a_receiver_that_stands_still_costs_nobody_time() -> None:
    writer = BackgroundWriter("test")
    entered, released = threading.Event(), threading.Event()
    written: list[int] = []

    def stand_still() -> None:
        entered.set()
        released.wait()

    writer.put(stand_still)
    assert entered.wait(30)
    taken = [writer.put(partial(written.append, number)) for number in range(10_000)]
    assert taken == [True] * 4096 + [False] * (10_000 - 4096)
    assert not writer.close(0.05)
    released.set()
    assert writer.close(30)
    assert written == list(range(4096))


def test_records_that_wait_for_a_slow_disk_hold_no_prompt(
    engine: ScriptedEngine, model: ServedModel, options: ServingOptions
) -> None:
    records: list[RequestRecord] = []
    engine.answer = answer_events(model.frontend.tokenizer, "hello")
    app = ObservedRequests(create_app(engine, engine.router, model, options), [records.append])
    with TestClient(app) as client:
        assert client.post("/completion", json={"prompt": [40] * 300}).status_code == 200
    [record], [request] = records, engine.requests.values()
    held = [one for one in reachable(record) if isinstance(one, list) and len(one) >= 300]
    assert held == [] and len(request.prompt) == 300
    assert record.generation is not None and record.generation.digest == PromptDigest.of([40] * 300)
    assert request_line(record)["prompt"]["tokens"] == 300


def reachable(record: RequestRecord) -> list[object]:
    """Everything that the record keeps in memory of its request, three steps far."""
    found: list[object] = [record]
    for _ in range(3):
        found += [one for one in gc.get_referents(*found) if not isinstance(one, type)]
    return found


def test_what_a_client_calls_a_method_is_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    long = {"method": "X" * 10_000, "raw_path": b"/a\x1b[2J", "type": "http"}
    assert begin_record(dict(long)).method == "?"
    assert begin_record({**long, "method": "POST"}).method == "POST"
    assert shown_endpoint(long) == "/a?[2J"


def test_the_path_of_a_request_that_hits_a_bug_cannot_steer_a_terminal(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def bug(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("ninfer.serving.info_routes.served_name", bug)
    assert client.get("/v1/models/%1B%5B2J").status_code == 500
    [shown] = [record.getMessage() for record in caplog.records if record.name == "ninfer.serving.http_errors"]
    assert shown == "GET /v1/models/{name:path} failed"
