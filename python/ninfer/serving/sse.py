"""Server-sent events: one answer as a stream of chunks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson
from fastapi import Response
from starlette.types import Receive, Scope, Send

from ninfer.engine.events import DEADLINE, Cancelled, Failed, Finished, PrefillProgress, TokenEvent
from ninfer.serving.answer_writer import AnswerWriter, Chunk
from ninfer.serving.client_presence import ClientLeft, while_client_stays
from ninfer.serving.http_errors import ApiError, unavailable
from ninfer.serving.request_record import note_client_left
from ninfer.serving.running_generation import RunningGeneration

# The line alone: with a blank line behind it, released clients would see an empty event.
COMMENT = b": the answer is being computed\n"


def frame(value: Any) -> bytes:
    """One event."""
    return b"data: " + orjson.dumps(value) + b"\n\n"


def ending_error(event: Cancelled | Failed) -> ApiError:
    """What a request means to its client that ended without an answer."""
    if isinstance(event, Cancelled) and event.reason == DEADLINE:
        return ApiError(503, "the answer took longer than this server allows", code="request_timeout")
    if isinstance(event, Cancelled):
        return unavailable(f"the request was cancelled: {event.reason}")
    # The engine that only found nothing to pick is well, and another try meets the same.
    return ApiError(500 if event.code == "no_finite_logit" else 503, event.message, code=event.code)


async def frames(writer: AnswerWriter, running: RunningGeneration, silence_s: float) -> AsyncIterator[bytes]:
    """The whole stream: chunks, a comment line after every `silence_s` seconds of silence, an error if there is one."""
    for chunk in writer.opening():
        yield frame(chunk)
    async for batch in running.batches(silence_s):
        # One write for all that a round brought.
        yield b"".join(frame(chunk) for event in batch for chunk in chunks(writer, event)) if batch else COMMENT
    yield writer.done


def chunks(writer: AnswerWriter, event: PrefillProgress | TokenEvent | Finished | Cancelled | Failed) -> list[Chunk]:
    if isinstance(event, TokenEvent):
        return writer.token(event)
    if isinstance(event, PrefillProgress):
        return writer.progress(event)
    if isinstance(event, Finished):
        return writer.finished(event)
    return [ending_error(event).body()]


class SseResponse(Response):
    """Sends a generation as it comes; cancels it when the client leaves."""

    def __init__(self, writer: AnswerWriter, running: RunningGeneration, silence_s: float) -> None:
        super().__init__(
            media_type="text/event-stream", headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        )
        # Its length is not known.
        del self.headers["content-length"]
        self._writer = writer
        self._running = running
        self._silence_s = silence_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await while_client_stays(receive, self._send_all(send))
        except ClientLeft:
            note_client_left(scope)
        finally:
            self._running.close()

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async for piece in frames(self._writer, self._running, self._silence_s):
            if piece:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
