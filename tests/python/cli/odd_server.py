"""A server that answers with the bytes that a test gives it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODELS = json.dumps({"data": [{"id": "first"}, {"id": "second"}]}).encode()


@dataclass
class OddServer:
    """status and body: of the answer to every chat; bodies: what clients posted."""

    url: str
    status: int = 200
    body: bytes = b""
    models: bytes = MODELS
    bodies: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def odd_server() -> Iterator[OddServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200, odd.models)

        def do_POST(self) -> None:
            odd.bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self._answer(odd.status, odd.body)

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002  # the library's own name
            pass

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        odd = OddServer(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield odd
        finally:
            server.shutdown()
            thread.join()
