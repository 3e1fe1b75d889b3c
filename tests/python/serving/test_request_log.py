"""Lines of the request log stay whole, whatever the disk does."""

from __future__ import annotations

import json
import os
import threading
from functools import partial
from pathlib import Path

import pytest

from ninfer.serving.background_writer import BackgroundWriter
from ninfer.serving.request_log import RequestLog, text_digest, token_digest
from ninfer.serving.request_record import RequestRecord


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
    assert token_digest([1, 256]) == "242045e2f1bb3776"
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
