"""Limits of connections, as a client on a socket meets them."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ninfer.serving.app import create_app
from ninfer.serving.served_model import ServedModel
from ninfer.serving.serving_options import ServingOptions
from tests.python.serving.live_server import serving
from tests.python.serving.scripted_engine import ScriptedEngine

MAX_HEADER_KIB = 20
MAX_HEADER_BYTES = MAX_HEADER_KIB << 10
HEALTH = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
LAST_HEALTH = b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


@pytest.fixture
def port(engine: ScriptedEngine, model: ServedModel) -> Iterator[int]:
    limits: dict[str, Any] = {"headers_timeout_s": 0.5, "max_connections": 2, "max_header_kib": MAX_HEADER_KIB}
    options = ServingOptions(served_model_names=("demo",), **limits)
    with serving(create_app(engine, engine.router, model, options), options) as port:
        yield port


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def rest_of(connection: socket.socket) -> bytes:
    received = b""
    while piece := connection.recv(10_000):
        received += piece
    return received


def error_in(answer: bytes, status: int) -> str:
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer
    code: str = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"]
    return code


@pytest.mark.parametrize("begun", [b"", b"GET /health HTTP/1.1\r\nHost:"])
def test_headers_that_do_not_come_end_the_connection(port: int, begun: bytes) -> None:
    with connected(port) as connection:
        connection.sendall(begun)
        assert error_in(rest_of(connection), 408) == "headers_timeout"


def test_headers_that_trickle_end_the_connection(port: int) -> None:
    start = time.monotonic()
    with connected(port) as connection:
        assert _trickled(connection, start + 5), "the connection is still open"


def _trickled(connection: socket.socket, deadline: float) -> bool:
    """Whether the connection ended before the deadline, at a header every 50 milliseconds."""
    try:
        connection.sendall(b"GET /health HTTP/1.1\r\n")
        while time.monotonic() < deadline:
            connection.sendall(b"x: y\r\n")
            time.sleep(0.05)
    except OSError:
        return True
    return False


def test_the_second_request_of_a_connection_has_the_same_limit(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(HEALTH)
        answer = b""
        while not answer.endswith(b'{"status":"ok"}'):
            answer += connection.recv(10_000)
        connection.sendall(b"GET /hea")
        assert error_in(rest_of(connection), 408) == "headers_timeout"


def test_headers_over_the_limit_are_refused(port: int) -> None:
    with connected(port) as connection:
        long = b"Long: " + b"y" * MAX_HEADER_BYTES
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + long + b"\r\n\r\n")
        answer = rest_of(connection)
    # In one piece they reach the application; in several, the parser gives up on them before they are complete.
    status, code = (431, "headers_too_large") if answer.startswith(b"HTTP/1.1 431") else (400, "invalid_http")
    assert error_in(answer, status) == code


def test_headers_under_the_limit_are_read(port: int) -> None:
    with connected(port) as connection:
        long = b"Long: " + b"y" * (MAX_HEADER_BYTES - 1000)
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + long + b"\r\n\r\n")
        assert b'{"status":"ok"}' in rest_of(connection)


def test_what_is_no_http_is_refused_in_the_shape_of_the_protocol(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
        assert error_in(rest_of(connection), 400) == "invalid_http"


def test_requests_sent_ahead_are_answered_in_order(port: int) -> None:
    models = HEALTH.replace(b"/health", b"/v1/models")
    with connected(port) as connection:
        connection.sendall(models + HEALTH + models + LAST_HEALTH)
        answer = rest_of(connection)
    kinds = [answer.index(b'"object":"list"'), answer.index(b'"status":"ok"'), answer.rindex(b'"object":"list"')]
    assert kinds == sorted(kinds)
    assert answer.count(b"HTTP/1.1 200 OK") == 4 and answer.endswith(b'{"status":"ok"}')


def test_connections_over_the_limit_are_answered_503(port: int) -> None:
    with connected(port) as first, connected(port) as second, connected(port) as third:
        third.sendall(HEALTH)
        assert error_in(rest_of(third), 503) == "too_many_connections"
        for within in (first, second):
            within.sendall(LAST_HEALTH)
            assert b'{"status":"ok"}' in rest_of(within)
    with connected(port) as later:
        later.sendall(LAST_HEALTH)
        assert b'{"status":"ok"}' in rest_of(later)
