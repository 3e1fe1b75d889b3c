"""Whatever the largest bodies hold, they cost bounded memory, and nobody else waits long for them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from tests.fixtures.demo_server import DemoServer, demo_process

BODY_BYTES = 8 << 20
# The server itself takes 100 MiB; a body of the largest size and what is made of it, twice at once, the rest.
MOST_MIB = 900
# On an idle machine 0.1 s. Where other programs take the cores in turns, many times that; what the server itself would
# hold up without its limits is seconds.
LONGEST_HEALTH_S = 3.0
SECONDS = 300
CHAT = "/v1/chat/completions"


def filled(before: str, unit: str, after: str) -> bytes:
    """As many units as fit."""
    room = BODY_BYTES - len(before) - len(after) - len(unit)
    return (before + unit * (room // len(unit)) + unit.rstrip(",") + after).encode()


BODIES: dict[str, tuple[str, bytes, int]] = {
    "pieces": ("/tokenize", filled('{"with_pieces":true,"content":"', ". ", '"}'), 400),
    "pieces that fit": ("/tokenize", json.dumps({"with_pieces": True, "content": ". " * (500 << 10)}).encode(), 200),
    "ids": ("/detokenize", filled('{"tokens":[', "40,", "]}"), 400),
    "prompt": ("/v1/completions", filled('{"prompt":"', ". ", '"}'), 400),
    "prompt of ids": ("/v1/completions", filled('{"prompt":[', "40,", "]}"), 400),
    "content": (CHAT, filled('{"messages":[{"role":"user","content":"', "<b> ", '"}]}'), 400),
    "rendered": ("/apply-template", filled('{"messages":[{"role":"user","content":"', "<b> ", '"}]}'), 200),
    "messages": (CHAT, filled('{"messages":[', '{"role":"user","content":""},', "]}"), 400),
    "arrays": (CHAT, filled('{"messages":[],"metadata":{"a":[', "[],", "]}}"), 400),
    "empty texts": (CHAT, filled('{"messages":[],"metadata":{"a":[', '"",', "]}}"), 400),
    "stop ids": ("/completion", filled('{"prompt":"a","stop_token_ids":[', "40,", "]}"), 400),
    "stops": ("/completion", filled('{"prompt":"a","stop":[', '"a",', "]}"), 400),
    "biases": ("/completion", filled('{"prompt":"a","logit_bias":[', "[40,1],", "]}"), 400),
    "nesting": ("/completion", b'{"prompt":' + b"[" * 4_000_000 + b"]" * 4_000_000 + b"}", 400),
}


@pytest.fixture(scope="module")
def server() -> Iterator[DemoServer]:
    with demo_process() as server:
        yield server


def peak_mib(pid: int) -> int:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines())
    return int(status["VmHWM"].split()[0]) >> 10


@pytest.mark.parametrize("name", BODIES)
def test_the_largest_bodies_cost_little(server: DemoServer, name: str) -> None:
    path, body, status = BODIES[name]
    over = threading.Event()
    gaps: list[float] = []
    url = f"http://127.0.0.1:{server.port}"

    def watch() -> None:
        with httpx2.Client(base_url=url, timeout=SECONDS) as client:
            while not over.is_set():
                start = time.monotonic()
                assert client.get("/health").status_code == 200
                gaps.append(time.monotonic() - start)

    with ThreadPoolExecutor(4) as threads:
        watching = threads.submit(watch)
        answers = list(threads.map(lambda _: httpx2.post(url + path, content=body, timeout=SECONDS), range(3)))
        over.set()
        watching.result()
    assert [answer.status_code for answer in answers] == [status] * 3, answers[0].text[:300]
    print(f"{name}: peak {peak_mib(server.pid)} MiB, longest health check {max(gaps) * 1e3:.0f} ms")
    assert peak_mib(server.pid) < MOST_MIB
    assert max(gaps) < LONGEST_HEALTH_S
