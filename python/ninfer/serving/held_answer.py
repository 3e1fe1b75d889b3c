"""A whole answer whose memory counts until its reader has taken it."""

from __future__ import annotations

from fastapi import Response
from starlette.types import Receive, Scope, Send

from ninfer.serving.body_budget import BodyShare

# A piece is sent once the system has taken the one before.
_PIECE_BYTES = 64 << 10


class HeldAnswer(Response):
    """JSON. Holds its share from its making to the end of its one call."""

    def __init__(self, content: bytes, share: BodyShare) -> None:
        super().__init__(content, media_type="application/json")
        self._share = share
        share.hold()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            content = memoryview(self.body)
            for start in range(0, len(content), _PIECE_BYTES):
                piece = bytes(content[start : start + _PIECE_BYTES])
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._share.let_go()
