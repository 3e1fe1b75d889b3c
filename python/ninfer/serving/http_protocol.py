"""HTTP/1.1 connections with limits that the server library does not have."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, ClassVar

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from ninfer.serving.cross_origin import open_to_pages
from ninfer.serving.http_errors import ApiError, error_response
from ninfer.serving.lingering_transport import LingeringTransport
from ninfer.serving.listening import BACKLOG
from ninfer.serving.observed_requests import ObservedRequests, RecordSink
from ninfer.serving.rare_warnings import RareWarnings
from ninfer.serving.serving_options import ServingOptions

# What the library says about connections; most of it any client can cause.
_LOG = logging.getLogger(__name__)
_LOG.addFilter(RareWarnings())
# Connections over the limit that may wait for their clients to read why.
_MOST_TURNED_AWAY = 64


class LimitedConnection(H11Protocol):
    """Closes a connection on which no request begins in time, and always notices that its client has left.

    Between requests a timer runs from the connection's beginning, or from the first byte after an answer, to the end of
    the next request's headers. While an answer is being made reading goes on, since only a reader learns that the other
    side has closed: what a client sends ahead is kept back, up to the size of headers.

    Whatever the system does not take at once pauses the answer, so at most one piece of it waits here. If the client
    then reads nothing for a while, the connection is cut: closing would wait for the client to read.

    A connection over the limit is answered at once and turned away. It does not count; when too many of them linger,
    the next are cut.
    """

    headers_timeout_s: float
    send_timeout_s: float
    max_header_bytes: int
    max_connections: int
    turned_away: ClassVar[set[LimitedConnection]]

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._headers_timer: asyncio.TimerHandle | None = None
        self._sent_ahead = b""
        self._send_timer: asyncio.TimerHandle | None = None
        self._unsent_bytes = 0
        self._refused = False
        self.logger = _LOG

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the library has it
        self._lingering = LingeringTransport(transport, self.loop, self._may_send_more)
        super().connection_made(self._lingering)
        transport.set_write_buffer_limits(high=0)
        if len(self.connections) > self.max_connections:
            self._turn_away()
        else:
            self._wait_for_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_send_timer()
        self._lingering.lost()
        self.turned_away.discard(self)
        super().connection_lost(exc)

    def shutdown(self) -> None:
        if self._lingering.lingers:
            self.transport.abort()
        else:
            super().shutdown()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_sending()

    def resume_writing(self) -> None:
        self._stop_send_timer()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        if self._lingering.lingers:
            self._lingering.discard(data)
            return
        if self._answering and not self.cycle.more_body:
            self._sent_ahead += data
            if len(self._sent_ahead) > self.max_header_bytes:
                self.transport.abort()
            return
        self._wait_for_headers()
        super().data_received(data)
        if self._answering:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        ahead, self._sent_ahead = self._sent_ahead, b""
        if ahead and not self.transport.is_closing():
            self.data_received(ahead)

    def send_400_response(self, msg: str) -> None:
        self._refuse(ApiError(400, msg, code="invalid_http"))

    @property
    def _answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _may_send_more(self) -> bool:
        """Whether closing now would meet something that the client sends."""
        cycle: RequestResponseCycle | None = self.cycle
        return self._refused or bool(self._sent_ahead) or (cycle is not None and cycle.more_body)

    def _turn_away(self) -> None:
        self.connections.discard(self)
        if len(self.turned_away) >= _MOST_TURNED_AWAY:
            self.transport.abort()
            return
        self.turned_away.add(self)
        self._refuse(ApiError(503, "too many connections", code="too_many_connections"))

    def _wait_for_headers(self) -> None:
        if self._headers_timer is None and not self._answering:
            self._headers_timer = self.loop.call_later(self.headers_timeout_s, self._headers_are_late)

    def _stop_waiting(self) -> None:
        if self._headers_timer is not None:
            self._headers_timer.cancel()
            self._headers_timer = None

    def _headers_are_late(self) -> None:
        self._headers_timer = None
        message = f"no complete headers came for {self.headers_timeout_s:g} seconds"
        self._refuse(ApiError(408, message, code="headers_timeout"))

    def _watch_sending(self) -> None:
        self._unsent_bytes = self.transport.get_write_buffer_size()
        self._send_timer = self.loop.call_later(self.send_timeout_s, self._check_sending)

    def _check_sending(self) -> None:
        if self.transport.get_write_buffer_size() < self._unsent_bytes:
            self._watch_sending()
        else:
            self.transport.abort()

    def _stop_send_timer(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None

    def _refuse(self, error: ApiError) -> None:
        """Written past the parser, whose state may be broken; the connection ends with it."""
        if self.transport.is_closing():
            return
        if not self._answering:
            response = error_response(error)
            head = f"HTTP/1.1 {error.status} \r\nContent-Type: application/json\r\nConnection: close\r\n"
            size = f"Content-Length: {len(response.body)}\r\n\r\n"
            self.transport.write((head + size).encode() + bytes(response.body))
        self._refused = True
        self._stop_waiting()
        self.transport.close()


class HeaderLimit:
    """431 for headers that came at once and are larger than the parser lets incomplete ones become."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            size = sum(len(name) + len(value) for name, value in scope["headers"])
            if size + len(scope["raw_path"]) + len(scope["query_string"]) > self._max_bytes:
                error = ApiError(431, f"the headers are larger than {self._max_bytes} bytes", code="headers_too_large")
                await error_response(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def server_config(
    app: ASGIApp, options: ServingOptions, host: str, port: int, sinks: Sequence[RecordSink] = ()
) -> uvicorn.Config:
    """How the server library runs `app` with the limits of `options`; `sinks` get a record of every request."""

    class Connection(LimitedConnection):
        headers_timeout_s = options.headers_timeout_s
        send_timeout_s = options.send_timeout_s
        max_header_bytes = options.max_header_bytes
        max_connections = options.max_connections
        turned_away: ClassVar[set[LimitedConnection]] = set()

    return uvicorn.Config(
        ObservedRequests(open_to_pages(HeaderLimit(app, options.max_header_bytes), options.cors_origins), sinks),
        host,
        port,
        http=Connection,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        backlog=BACKLOG,
        h11_max_incomplete_event_size=options.max_header_bytes,
        timeout_keep_alive=options.keep_alive_s,
        timeout_graceful_shutdown=options.shutdown_timeout_s,
    )
