"""A client that does not read what it asked for costs a bounded time and bounded memory."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass

import pytest

from ninfer.engine.events import Cancelled, TokenEvent
from ninfer.serving.app import create_app
from ninfer.serving.event_router import MAX_WAITING_EVENTS
from ninfer.serving.running_generation import CLIENT_LAGS, CLIENT_LEFT
from ninfer.serving.served_model import ServedModel
from ninfer.serving.serving_options import ServingOptions
from tests.python.serving.live_server import serving, wait_until
from tests.python.serving.scripted_engine import ScriptedEngine, answer_events

# More than any system takes from us for a client that reads nothing.
LONG_TEXT = "x" * (16 << 20)


@dataclass(frozen=True)
class Client:
    port: int
    connection: socket.socket


@contextmanager
def asked(engine: ScriptedEngine, model: ServedModel, send_timeout_s: float, *, stream: bool) -> Iterator[Client]:
    """A live server with that timeout, and a client that asked for a completion."""
    options = ServingOptions(served_model_names=("demo",), send_timeout_s=send_timeout_s)
    with (
        serving(create_app(engine, engine.router, model, options), options) as port,
        closing(ask(port, stream=stream)) as connection,
    ):
        wait_until(lambda: engine.requests)
        yield Client(port, connection)


def ask(port: int, *, stream: bool) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    body = json.dumps({"prompt": "hi", "stream": stream}).encode()
    connection.sendall(b"POST /completion HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    return connection


def health(port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        return connection.recv(100)


def was_cut(connection: socket.socket) -> bool:
    """Whether the connection is gone, and most of the answer with it. What is sent ahead only shows when it is."""
    with suppress(OSError):
        for _ in range(300):
            connection.sendall(b"\r\n")
            time.sleep(0.1)
    received = 0
    with suppress(ConnectionError):
        while piece := connection.recv(1 << 20):
            received += len(piece)
    return received < len(LONG_TEXT)


def test_a_stream_that_nobody_reads_is_cut_and_its_request_cancelled(
    engine: ScriptedEngine, model: ServedModel
) -> None:
    with asked(engine, model, 0.5, stream=True) as client:
        engine.hand_over([(1, [TokenEvent(5, LONG_TEXT, None)])])
        wait_until(lambda: engine.cancelled)
        assert engine.cancelled == {1: CLIENT_LEFT}
        engine.hand_over([(1, [Cancelled(CLIENT_LEFT)])])
        wait_until(lambda: engine.router.open_entries == 0)
        assert was_cut(client.connection)


def test_an_answer_that_nobody_reads_is_cut(engine: ScriptedEngine, model: ServedModel) -> None:
    events = answer_events(model.frontend.tokenizer, "hello")
    engine.answer = [TokenEvent(5, LONG_TEXT, None), *events]
    with asked(engine, model, 0.5, stream=False) as client:
        assert was_cut(client.connection)


def test_a_client_that_reads_slowly_gets_everything(engine: ScriptedEngine, model: ServedModel) -> None:
    engine.answer = [TokenEvent(5, LONG_TEXT, None), *answer_events(model.frontend.tokenizer, "hello")]
    with asked(engine, model, 2.0, stream=True) as client:
        received = 0
        last = b""
        while not last.endswith(b"\r\n0\r\n\r\n"):
            piece = client.connection.recv(1 << 20)
            assert piece, f"the connection ended after {received} bytes"
            received += len(piece)
            last = last[-10:] + piece
            if received % 7 == 0:
                time.sleep(0.05)
    assert received > len(LONG_TEXT)
    assert not engine.cancelled


def test_events_that_nobody_takes_are_bounded(engine: ScriptedEngine, model: ServedModel) -> None:
    with asked(engine, model, 30, stream=True) as client:
        engine.hand_over([(1, [TokenEvent(5, LONG_TEXT, None)])])
        batch = [TokenEvent(5, "x", None)] * 100
        told = 0
        while not engine.cancelled:
            engine.hand_over([(1, batch)])
            told += len(batch)
            # An answered request shows that all has been seen.
            assert health(client.port).startswith(b"HTTP/1.1 200")
        # What was being sent when the client stopped reading does not wait any more.
        assert MAX_WAITING_EVENTS <= told <= MAX_WAITING_EVENTS + 10 * len(batch)
        assert engine.cancelled == {1: CLIENT_LAGS}
        # Whoever reads on after all is told how it ended.
        engine.hand_over([(1, [Cancelled(CLIENT_LAGS)])])
        last = b""
        while not last.endswith(b"\r\n0\r\n\r\n"):
            last = last[-1000:] + client.connection.recv(1 << 20)
        assert CLIENT_LAGS.encode() in last
    assert engine.router.open_entries == 0


@pytest.mark.parametrize("path", ["/health", "/openapi.json"])
def test_answers_of_requests_sent_ahead_wait_for_their_reader(
    engine: ScriptedEngine, model: ServedModel, path: str
) -> None:
    """A client that asks and never reads cannot make answers pile up either."""
    ahead = b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path.encode()
    options = ServingOptions(served_model_names=("demo",), send_timeout_s=0.5)
    with (
        serving(create_app(engine, engine.router, model, options), options) as port,
        socket.create_connection(("127.0.0.1", port), timeout=0.2) as connection,
    ):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                connection.send(ahead * 100)
            except TimeoutError:
                continue
            except OSError:
                return
        pytest.fail("the connection is still open")
