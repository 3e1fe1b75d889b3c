"""Keeps a record of every request and gives it to the logs when the request is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ninfer.serving.request_record import RequestRecord, begin_record

# Called on the event loop with each record, once; it must neither block nor raise.
RecordSink = Callable[[RequestRecord], None]


class ObservedRequests:
    """Around everything that answers. Responses carry the record's id as `x-request-id`."""

    def __init__(self, app: ASGIApp, sinks: Sequence[RecordSink]) -> None:
        self._app = app
        self._sinks = sinks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        record = begin_record(scope)

        async def noting_status(message: Message) -> None:
            if message["type"] == "http.response.start":
                record.status = message["status"]
                message = {**message, "headers": [*message["headers"], (b"x-request-id", record.id.encode())]}
            await send(message)

        try:
            await self._app(scope, receive, noting_status)
        finally:
            record.end(scope)
            for sink in self._sinks:
                sink(record)
