"""The memory of all bodies together is bounded, and large ones cannot keep small ones out."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from ninfer.serving.app import create_app
from ninfer.serving.body_budget import FREE_BYTES, BodyBudget
from ninfer.serving.http_errors import ApiError
from ninfer.serving.served_model import ServedModel
from ninfer.serving.serving_options import ServingOptions
from tests.python.serving.live_server import serving, wait_until
from tests.python.serving.scripted_engine import ScriptedEngine, answer_events

HEAD = b"POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
MIB = 1 << 20


def test_shares_grow_within_the_budget_and_come_back() -> None:
    budget = BodyBudget(1000)
    with budget.share() as one, budget.share() as two:
        one.grow_to(FREE_BYTES)
        assert budget.taken_bytes == 0
        one.grow_to(FREE_BYTES + 600)
        two.grow_to(FREE_BYTES + 400)
        assert budget.taken_bytes == 1000
        with pytest.raises(ApiError) as caught:
            one.grow_to(FREE_BYTES + 601)
        assert (caught.value.status, caught.value.code) == (503, "too_many_bodies")
        two.grow_to(10)
        assert budget.taken_bytes == 1000
    assert budget.taken_bytes == 0


@pytest.fixture
def port(engine: ScriptedEngine, model: ServedModel) -> Iterator[int]:
    options = ServingOptions(served_model_names=("demo",), max_body_mib=1)
    engine.answer = answer_events(model.frontend.tokenizer, "hello")
    with serving(create_app(engine, engine.router, model, options), options) as port:
        yield port


def answer(connection: socket.socket) -> bytes:
    received = b""
    while piece := connection.recv(10_000):
        received += piece
    return received


@pytest.mark.parametrize("path", [b"/completion", b"/v1/chat/completions", b"/tokenize"])
def test_large_bodies_that_never_end_leave_room_for_small_ones(port: int, path: bytes) -> None:
    with ExitStack() as open_connections:

        def connected() -> socket.socket:
            return open_connections.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))

        begun = [connected() for _ in range(9)]
        for connection in begun:
            connection.sendall(HEAD % (path, MIB) + b'{"prompt": "' + b"a" * (MIB - 20))

        def refused() -> bool:
            """Whether one more large body has no room; if it has, it stays and takes it."""
            late = connected()
            late.settimeout(1)
            try:
                late.sendall(HEAD % (path, MIB) + b"a" * (MIB - 10))
                return late.recv(100).startswith(b"HTTP/1.1 503")
            except TimeoutError:
                return False

        wait_until(refused, 30)
        small = connected()
        small.sendall(HEAD % (b"/completion", 16) + b'{"prompt": "hi"}')
        assert answer(small).startswith(b"HTTP/1.1 200")

    body = b'{"prompt": "hi", "x": "%s"}' % (b"a" * (MIB - 100))

    def taken() -> bool:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(HEAD % (b"/completion", len(body)) + body)
            return answer(connection).startswith(b"HTTP/1.1 200")

    wait_until(taken, 30)


def test_text_answers_that_nobody_reads_are_bounded_and_leave_room_for_small_ones(
    engine: ScriptedEngine, model: ServedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ninfer.serving.app._ANSWERS_BYTES", 20 * MIB)
    tokenizer = model.frontend.tokenizer
    longest = max(range(tokenizer.vocab_size), key=lambda token: len(tokenizer.token_bytes(token)))
    # More than the system takes from us for a client that reads nothing, and less than two of them.
    large = json.dumps({"tokens": [longest] * (15 * MIB // len(tokenizer.token_bytes(longest)))}).encode()
    small = b'{"tokens": [40]}'
    options = ServingOptions(served_model_names=("demo",))
    with serving(create_app(engine, engine.router, model, options), options) as port:

        def asked(body: bytes) -> socket.socket:
            connection = socket.create_connection(("127.0.0.1", port), timeout=60)
            connection.sendall(HEAD % (b"/detokenize", len(body)) + body)
            return connection

        with asked(large) as unread:
            assert unread.recv(12) == b"HTTP/1.1 200"
            with asked(large) as second:
                refusal = answer(second)
                assert refusal.startswith(b"HTTP/1.1 503") and b"too_many_answers" in refusal
                assert b"retry-after" in refusal
            with asked(small) as other:
                assert answer(other).startswith(b"HTTP/1.1 200")
            assert len(answer(unread)) > 15 * MIB

        def taken() -> bool:
            with asked(large) as again:
                return answer(again).startswith(b"HTTP/1.1 200")

        wait_until(taken, 60)
