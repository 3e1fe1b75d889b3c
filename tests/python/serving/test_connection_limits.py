"""Limits of connections, as a client on a socket meets them."""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from ninfer.serving.app import create_app
from ninfer.serving.rare_warnings import RareWarnings
from ninfer.serving.served_model import ServedModel
from ninfer.serving.serving_options import ServingOptions
from tests.python.serving.live_server import serving, wait_until
from tests.python.serving.scripted_engine import ScriptedEngine

MAX_HEADER_KIB = 20
MAX_HEADER_BYTES = MAX_HEADER_KIB << 10
HEALTH = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
LAST_HEALTH = b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


@pytest.fixture
def limits() -> dict[str, Any]:
    """Beside those of every test."""
    return {}


@pytest.fixture
def port(engine: ScriptedEngine, model: ServedModel, limits: dict[str, Any]) -> Iterator[int]:
    options = ServingOptions(served_model_names=("demo",), max_header_kib=MAX_HEADER_KIB, **limits)
    with serving(create_app(engine, engine.router, model, options), options) as port:
        yield port


late_headers = pytest.mark.parametrize("limits", [{"headers_timeout_s": 0.5}])
few_connections = pytest.mark.parametrize("limits", [{"max_connections": 2}])


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


@late_headers
@pytest.mark.parametrize("begun", [b"", b"GET /health HTTP/1.1\r\nHost:"])
def test_headers_that_do_not_come_end_the_connection(port: int, begun: bytes) -> None:
    with connected(port) as connection:
        connection.sendall(begun)
        assert error_in(rest_of(connection), 408) == "headers_timeout"


@late_headers
def test_headers_that_trickle_end_the_connection(port: int) -> None:
    start = time.monotonic()
    with connected(port) as connection:
        assert _trickled(connection, start + 30), "the connection is still open"


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


@late_headers
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


@few_connections
def test_connections_over_the_limit_are_answered_503_at_once(port: int) -> None:
    with connected(port) as first, connected(port) as second, connected(port) as third:
        # It need not ask, and may.
        assert third.recv(12) == b"HTTP/1.1 503"
        third.sendall(HEALTH)
        assert error_in(b"HTTP/1.1 503" + rest_of(third), 503) == "too_many_connections"
        for within in (first, second):
            within.sendall(LAST_HEALTH)
            assert b'{"status":"ok"}' in rest_of(within)
    with connected(port) as later:
        later.sendall(LAST_HEALTH)
        assert b'{"status":"ok"}' in rest_of(later)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@few_connections
def test_a_flood_of_connections_leaves_no_sockets_and_no_lines(port: int, caplog: pytest.LogCaptureFixture) -> None:
    with ExitStack() as held:
        within = [held.enter_context(connected(port)) for _ in range(2)]
        for one in within:  # it is there, so the others come after it
            one.sendall(HEALTH)
            assert one.recv(12) == b"HTTP/1.1 200"
        before = open_files()
        flood = [held.enter_context(connected(port)) for _ in range(200)]
        # Ours are 200; of the server's a few linger, for clients that have not read yet.
        wait_until(lambda: open_files() <= before + len(flood) + 64)
        for one in flood:
            one.close()
        wait_until(lambda: open_files() <= before)
        within[0].close()
        with connected(port) as later:
            later.sendall(LAST_HEALTH)
            assert rest_of(later).startswith(b"HTTP/1.1 200")
    assert caplog.records == []


REFUSED: dict[str, tuple[bytes, int, str, dict[str, Any]]] = {
    "declared too large": (b"Content-Length: 4000000", 413, "body_too_large", {"max_body_mib": 1}),
    "chunked too large": (b"Transfer-Encoding: chunked", 413, "body_too_large", {"max_body_mib": 1}),
    "key": (b"Content-Length: 4000000\r\nConnection: close", 401, "invalid_api_key", {"api_keys": frozenset({"k"})}),
    "connections": (b"Content-Length: 4000000", 503, "too_many_connections", {"max_connections": 1}),
    "no HTTP": (b"Content-Length: many", 400, "invalid_http", {}),
}


@pytest.mark.parametrize(("head", "status", "code", "limits"), REFUSED.values(), ids=REFUSED.keys())
def test_who_sends_the_whole_body_first_can_read_why_it_was_refused(
    port: int, head: bytes, status: int, code: str
) -> None:
    body = b"a" * 4_000_000
    if b"chunked" in head:
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    with connected(port) as first, connected(port) as connection:
        if status != 503:
            first.close()
        connection.sendall(b"POST /completion HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n\r\n" + body)
        assert error_in(rest_of(connection), status) == code


def test_who_is_refused_and_never_stops_sending_is_cut(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ninfer.serving.lingering_transport._LINGER_S", 0.5)
    with connected(port) as connection:
        connection.sendall(b"POST /completion HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n")
        deadline = time.monotonic() + 30
        with suppress(OSError):
            while time.monotonic() < deadline:
                connection.sendall(b"a" * 1000)
                time.sleep(0.02)
        assert time.monotonic() < deadline, "it may still send"


def test_bad_requests_fill_no_log(port: int, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(5):
        with connected(port) as connection:
            connection.sendall(b"\x16\x03\x01\r\n\r\n")
            rest_of(connection)
        with connected(port) as connection:
            connection.sendall(LAST_HEALTH.replace(b"Connection: close", b"Connection: close, upgrade\r\nUpgrade: h2c"))
            assert b'{"status":"ok"}' in rest_of(connection)
    shown = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(shown) == len(set(shown)), shown


def test_warnings_come_back_after_a_while() -> None:
    rare = RareWarnings()
    times = (0.0, 1.0, 59.0, 61.0, 62.0, 10.0)
    records = [logging.makeLogRecord({"msg": "x", "levelno": logging.WARNING, "created": time}) for time in times]
    assert [rare.filter(record) for record in records] == [True, False, False, True, False, True]
    assert all(rare.filter(logging.makeLogRecord({"msg": "x", "levelno": logging.ERROR})) for _ in range(3))


@pytest.mark.parametrize(
    ("count", "soft", "hard", "expected"),
    [(300, 64, 600, "600 600"), (345, 64, 600, "at most 344 works where a process may open 600 files")],
)
def test_connections_need_files(count: int, soft: int, hard: int, expected: str) -> None:
    program = f"""
import resource
from ninfer.errors import OptionError
from ninfer.serving.open_files import allow_connections
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
try:
    allow_connections({count})
    print(*resource.getrlimit(resource.RLIMIT_NOFILE))
except OptionError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert expected in found
