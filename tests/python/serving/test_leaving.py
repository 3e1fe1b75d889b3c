"""A client that leaves, by closing or half-closing, ends its request, whatever state that is in."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from ninfer.engine.catalog_view import CatalogView
from ninfer.engine.events import Cancelled, TokenEvent
from ninfer.serving.app import create_app
from ninfer.serving.request_record import RequestRecord
from ninfer.serving.running_generation import CLIENT_LEFT
from ninfer.serving.served_model import ServedModel
from ninfer.serving.serving_options import ServingOptions
from ninfer.serving.sse import COMMENT
from tests.python.serving.live_server import serving, wait_until
from tests.python.serving.scripted_engine import ScriptedEngine, answer_events

PATHS = ("/v1/chat/completions", "/v1/completions", "/completion")


@pytest.fixture
def port(engine: ScriptedEngine, model: ServedModel) -> Iterator[int]:
    options = ServingOptions(served_model_names=("demo",), comment_interval_s=0.05, body_timeout_s=0.5)
    with serving(create_app(engine, engine.router, model, options), options) as port:
        yield port


def ask(port: int, path: str, *, stream: bool, ahead: bytes = b"") -> socket.socket:
    prompt = {"messages": [{"role": "user", "content": "hi"}]} if "chat" in path else {"prompt": "hi"}
    fields = {"stream": stream, **prompt}
    body = json.dumps(fields).encode()
    connection = socket.create_connection(("127.0.0.1", port), timeout=10)
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (path.encode(), len(body))
    connection.sendall(head + body + ahead)
    return connection


def leave(connection: socket.socket, how: str) -> None:
    if how == "half-close":
        connection.shutdown(socket.SHUT_WR)
    else:
        connection.close()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("how", ["close", "half-close"])
@pytest.mark.parametrize("decoding", [False, True])
def test_leaving_cancels(port: int, engine: ScriptedEngine, path: str, stream: bool, how: str, decoding: bool) -> None:
    with closing(ask(port, path, stream=stream)) as connection:
        wait_until(lambda: engine.requests)
        if decoding:
            engine.hand_over([(1, [TokenEvent(5, "hello", None)])])
        if stream:
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
        leave(connection, how)
        wait_until(lambda: engine.cancelled)
    assert engine.cancelled == {1: CLIENT_LEFT}
    # The engine's last word removes what is left of the request.
    engine.hand_over([(1, [Cancelled(CLIENT_LEFT)])])
    wait_until(lambda: engine.router.open_entries == 0)


def test_leaving_is_noticed_behind_a_request_that_was_sent_ahead(port: int, engine: ScriptedEngine) -> None:
    health = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    with closing(ask(port, "/completion", stream=False, ahead=health)) as connection:
        wait_until(lambda: engine.requests)
        connection.sendall(health)
        leave(connection, "half-close")
        wait_until(lambda: engine.cancelled)


def test_leaving_while_the_request_is_being_submitted_cancels(
    port: int, engine: ScriptedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, go_on = threading.Event(), threading.Event()
    submit = engine.submit

    def slow_submit(request: object) -> int:
        inside.set()
        assert go_on.wait(10)
        return submit(request)  # type: ignore[arg-type]  # whatever the server submits

    monkeypatch.setattr(engine, "submit", slow_submit)
    with closing(ask(port, "/v1/completions", stream=True)):
        assert inside.wait(10)
    # The server has seen the client leave once a request that came later has been answered.
    with socket.create_connection(("127.0.0.1", port), timeout=10) as other:
        other.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert other.recv(100).startswith(b"HTTP/1.1 200")
    go_on.set()
    wait_until(lambda: engine.cancelled)
    assert engine.cancelled == {1: CLIENT_LEFT}


def test_a_client_that_stays_is_not_cancelled_and_a_silent_stream_shows_that_it_lives(
    port: int, engine: ScriptedEngine, model: ServedModel
) -> None:
    with closing(ask(port, "/v1/completions", stream=True)) as connection:
        received = b""
        while received.count(COMMENT) < 3:
            received += connection.recv(1000)
        engine.hand_over([(1, answer_events(model.frontend.tokenizer, "hello"))])
        while b"[DONE]" not in received:
            received += connection.recv(1000)
    assert not engine.cancelled
    # A comment is one line: no empty event behind it, no field that a client would keep.
    assert COMMENT.startswith(b":") and COMMENT.count(b"\n") == 1 and COMMENT.endswith(b"\n")
    assert COMMENT + b"\n" not in received.replace(b"\r\n", b"")
    wait_until(lambda: engine.router.open_entries == 0)


def test_a_body_that_does_not_come_is_given_up(port: int, engine: ScriptedEngine) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(b'POST /completion HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"prompt"')
        received = b""
        while piece := connection.recv(1000):
            received += piece
    assert received.startswith(b"HTTP/1.1 408") and b"body_timeout" in received
    assert not engine.requests


@pytest.mark.parametrize("path", [*PATHS, "/tokenize"])
@pytest.mark.parametrize("how", ["close", "half-close"])
def test_leaving_within_the_body_is_logged_as_leaving(
    engine: ScriptedEngine, model: ServedModel, path: str, how: str
) -> None:
    options = ServingOptions(served_model_names=("demo",))
    records: list[RequestRecord] = []
    app = create_app(engine, engine.router, model, options)
    with (
        serving(app, options, sinks=[records.append]) as port,
        socket.create_connection(("127.0.0.1", port), timeout=10) as connection,
    ):
        connection.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{{".encode())
        leave(connection, how)
        wait_until(lambda: records)
    [record] = records
    assert (record.endpoint, record.final_status, record.client_left) == (path, 499, True)
    assert not engine.requests


@pytest.mark.parametrize("how", ["close", "half-close"])
def test_who_asked_for_the_slots_and_left_is_not_waited_for(port: int, engine: ScriptedEngine, how: str) -> None:
    """Others are answered even so."""
    engine.catalog = None
    question = b"GET /slots HTTP/1.1\r\nHost: x\r\n\r\n"
    with (
        closing(socket.create_connection(("127.0.0.1", port), timeout=10)) as leaving,
        closing(socket.create_connection(("127.0.0.1", port), timeout=10)) as staying,
    ):
        leaving.sendall(question)
        wait_until(lambda: len(engine.questions) == 1)
        staying.sendall(question)
        wait_until(lambda: len(engine.questions) == 2)
        leave(leaving, how)
        wait_until(engine.questions[0].cancelled)
        assert engine.questions[1].set_running_or_notify_cancel()
        engine.questions[1].set_result(CatalogView())
        received = b""
        while not received.endswith(b"\r\n\r\n[]"):
            piece = staying.recv(4096)
            assert piece, received
            received += piece
