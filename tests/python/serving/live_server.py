"""A server on a loopback port, in a thread of the test's process."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from fastapi import FastAPI

from ninfer.serving.http_protocol import server_config
from ninfer.serving.http_server import HttpServer
from ninfer.serving.observed_requests import RecordSink
from ninfer.serving.serving_options import ServingOptions


@contextmanager
def serving(
    app: FastAPI,
    options: ServingOptions,
    stop_engine: Callable[[], None] = lambda: None,
    sinks: Sequence[RecordSink] = (),
) -> Iterator[int]:
    """The port; the server, and the engine by `stop_engine`, have stopped at the end of the block."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        server = HttpServer(server_config(app, options, "127.0.0.1", port, sinks), stop_engine)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            wait_until(lambda: server.started)
            yield port
        finally:
            server.should_exit = True
            thread.join(10)
            assert not thread.is_alive(), "the server did not stop"


def wait_until(condition: Callable[[], object], timeout_s: float = 10.0) -> None:
    """Returns once `condition()` is true; fails after `timeout_s` seconds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)
