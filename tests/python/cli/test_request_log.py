"""`--request-log` and the console: every request leaves one line, and none of what a client wrote."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2

from tests.fixtures.ninfer_server import SECONDS, ServerProcess, ninfer_serve

QUESTION = "what is 12 plus 30?"
SECRETS = ("sesame-key", "salty-salt", "session-of-karin", "12 plus 30", "wordstop")
KEY = {"authorization": f"Bearer {SECRETS[0]}"}


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def logged(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def console(server: ServerProcess, request_id: str) -> str:
    """The console's line about a request, without date, level and id."""
    found = [line for line in server.errors if line.endswith(f" [{request_id}]")]
    assert len(found) == 1, server.errors
    return found[0].split("INFO ")[1].strip().removesuffix(f" [{request_id}]")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def test_a_finished_answer_is_logged_with_what_it_cost(tmp_path: Path) -> None:
    file = tmp_path / "requests.jsonl"
    file.write_text('{"before": true}\n', encoding="utf-8")
    body = {
        "messages": [{"role": "user", "content": QUESTION}],
        "cache_salt": SECRETS[1],
        "session_id": SECRETS[2],
        "stop": SECRETS[4],
        "seed": 7,
    }
    with ninfer_serve("--demo", "--port", "0", "--request-log", str(file), "--api-key", SECRETS[0]) as server:
        url = server.url()
        prompt = httpx2.post(f"{url}/apply-template", headers=KEY, json={"messages": body["messages"]}).json()["prompt"]
        ids = httpx2.post(f"{url}/tokenize", headers=KEY, json={"content": prompt}).json()["tokens"]
        answer = httpx2.post(f"{url}/v1/chat/completions", headers=KEY, json=body)
        assert server.stop() == 0
    whole = answer.json()
    before, rendered, tokenized, line = logged(file)
    assert before == {"before": True}
    assert (rendered["endpoint"], tokenized["endpoint"], tokenized["end"]) == (
        "/apply-template",
        "/tokenize",
        "answered",
    )
    assert line["id"] == answer.headers["x-request-id"]
    assert (line["method"], line["endpoint"], line["status"]) == ("POST", "/v1/chat/completions", 200)
    assert (line["model"], line["stream"]) == ("hybrid", False)
    tokens = b"".join(token.to_bytes(4, "little") for token in ids)
    assert line["prompt"] == {"tokens": len(ids), "sha256": digest(tokens)}
    assert line["cache"] == {
        "use": True,
        "salt_sha256": digest(SECRETS[1].encode()),
        "session_sha256": digest(SECRETS[2].encode()),
        "sharing": None,
    }
    assert (line["params"]["seed"], line["params"]["stop"], line["params"]["temperature"]) == (7, 1, 0.0)
    assert (line["end"], line["finish_reason"]) == ("finished", "stop")
    assert {name: line[name] for name in ("usage", "timings", "reuse")} == {
        name: whole[name] for name in ("usage", "timings", "reuse")
    }
    timings = whole["timings"]
    assert console(server, line["id"]) == (
        f"POST /v1/chat/completions 200 prompt {len(ids)} tokens, cached 0, computed {len(ids)}"
        f" at {timings['prompt_per_second']:.1f} tok/s; answer {timings['predicted_n']} tokens"
        f" at {timings['predicted_per_second']:.1f} tok/s; queued {timings['queue_ms']:.0f} ms; stop"
    )
    written = file.read_text("utf-8") + "".join(server.lines + server.errors)
    assert [secret for secret in SECRETS if secret in written] == []


def test_requests_that_end_in_another_way_are_logged_too(tmp_path: Path) -> None:
    file = tmp_path / "requests.jsonl"
    endless = {"prompt": "one two", "max_tokens": 30_000, "ignore_eos": True, "stream": True}
    options = ("--demo", "--port", "0", "--request-log", str(file), "--max-concurrency", "1", "--max-queued", "1")
    with ninfer_serve(*options) as server, httpx2.Client(timeout=SECONDS) as client:
        url = server.url()
        client.get(f"{url}/health")
        client.get(f"{url}/nothing/here%1B[2J", params={"key": "query-secret"})
        client.post(f"{url}/v1/chat/completions", json={"messages": [], "unknown-secret": 1})

        def stream() -> httpx2.Response:
            return client.send(client.build_request("POST", f"{url}/v1/completions", json=endless), stream=True)

        refusals = 0
        leaving = stream()
        next(leaving.iter_raw())
        leaving.close()
        wait_for(lambda: len(logged(file)) == 4)
        running, queued = stream(), stream()
        while queued.status_code == 429:
            # The one that left keeps its place until the engine's unit is over.
            refusals += 1
            queued.close()
            queued = stream()
        # Kept, since an iterator that is dropped closes its connection.
        pieces = running.iter_raw()
        next(pieces)
        full = client.post(f"{url}/v1/completions", json=endless)
        assert server.stop(signal.SIGTERM) == 0
        running.close()
        queued.close()
    lines = logged(file)
    del lines[4 : 4 + refusals]
    assert [(line["endpoint"], line["status"], line["end"]) for line in lines[:5]] == [
        ("/health", 200, "answered"),
        ("/nothing/here%1B[2J", 404, "refused"),
        ("/v1/chat/completions", 400, "refused"),
        ("/v1/completions", 499, "client_left"),
        ("/v1/completions", 429, "refused"),
    ]
    assert full.status_code == 429
    assert [(line["status"], line["end"], line["reason"]) for line in lines[5:]] == [(200, "cancelled", "shutdown")] * 2
    assert "secret" not in file.read_text("utf-8") + "".join(server.errors)
    shown = [console(server, line["id"]) for line in lines[1:]]
    assert re.fullmatch(r"GET /nothing/here%1B\[2J 404 after [\d.]+ s", shown[0])
    assert re.fullmatch(r"POST /v1/completions 499 prompt 4 tokens; the client left after [\d.]+ s", shown[2])
    assert re.fullmatch(r"POST /v1/completions 429 after [\d.]+ s", shown[3])
    assert re.fullmatch(r"POST /v1/completions 200 prompt 4 tokens; cancelled: shutdown after [\d.]+ s", shown[4])
    assert [line for line in server.errors if lines[0]["id"] in line] == [], "health checks are no news"


def test_a_log_that_cannot_be_written_any_more_is_reported_once_and_hurts_nobody() -> None:
    with ninfer_serve("--demo", "--port", "0", "--request-log", "/dev/full") as server:
        url = server.url()
        answers = [httpx2.post(f"{url}/tokenize", json={"content": "hello"}) for _ in range(3)]
        assert server.stop() == 0
    assert [answer.status_code for answer in answers] == [200] * 3
    reports = [line for line in server.errors if "requests are missing from the log" in line]
    assert len(reports) == 1 and "/dev/full" in reports[0] and "No space left on device" in reports[0]


def test_the_console_shows_no_requests_from_the_level_warning_on() -> None:
    with ninfer_serve("--demo", "--port", "0", "--log-level", "warning") as server:
        httpx2.post(f"{server.url()}/tokenize", json={"content": "hello"})
        assert server.stop() == 0
    assert server.errors == []


def test_a_pipe_that_nobody_reads_is_refused_at_once_and_one_that_is_read_gets_its_lines(tmp_path: Path) -> None:
    pipe = tmp_path / "requests.pipe"
    os.mkfifo(pipe)
    with ninfer_serve("--demo", "--port", "0", "--request-log", str(pipe)) as server:
        assert server.wait() == 1
    assert server.errors == [f"ninfer-serve: {pipe}: No such device or address"]
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(reader, encoding="utf-8") as lines:
        with ninfer_serve("--demo", "--port", "0", "--request-log", str(pipe)) as server:
            httpx2.post(f"{server.url()}/tokenize", json={"content": "hello"})
            assert server.stop() == 0
        [line] = map(json.loads, lines)
    assert line["endpoint"] == "/tokenize"
