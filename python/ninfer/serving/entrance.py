"""What answers requests while there is no application yet."""

from __future__ import annotations

import orjson
from fastapi import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ninfer.serving.http_errors import error_response, unavailable

_HEALTH = ("/health", "/v1/health")


class Entrance:
    """Life: loading, where every request is answered 503 with `reason`; then `open` lets the application answer.

    It keeps the application's own lifespan to whoever opens it, since the server has begun by then.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self._app: ASGIApp | None = None

    def open(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif self._app is not None:
            await self._app(scope, receive, send)
        else:
            await self._not_yet(scope["path"])(scope, receive, send)

    def _not_yet(self, path: str) -> Response:
        error = unavailable(self.reason)
        if path in _HEALTH:
            return Response(orjson.dumps({"status": "loading", **error.body()}), 503, media_type="application/json")
        error.headers["Retry-After"] = "1"
        return error_response(error)


async def _live(receive: Receive, send: Send) -> None:
    for phase in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{phase}.complete"})
