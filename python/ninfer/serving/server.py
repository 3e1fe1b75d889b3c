"""Everything that the endpoints share, and the way of a generation request through it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
from fastapi import Request, Response

from ninfer.engine.events import Cancelled, Failed
from ninfer.serving.answer_writer import AnswerWriter, Chunk
from ninfer.serving.auth import check_key
from ninfer.serving.client_presence import ClientLeft, while_client_stays
from ninfer.serving.decode import read_body
from ninfer.serving.engine_port import EnginePort
from ninfer.serving.generation_request import GenerationRequest
from ninfer.serving.running_generation import Generations, RunningGeneration
from ninfer.serving.served_model import ServedModel
from ninfer.serving.serving_options import ServingOptions
from ninfer.serving.sse import SseResponse, chunks, ending_error

_LOG = logging.getLogger(__name__)
_SILENCE_S = 60.0

Translate = Callable[[bytes, Mapping[str, str], ServedModel, ServingOptions], GenerationRequest]
WriterOf = Callable[[GenerationRequest, ServedModel], AnswerWriter]
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Server:
    """What the endpoints work with; lives as long as the application."""

    engine: EnginePort
    model: ServedModel
    options: ServingOptions
    generations: Generations

    async def check_key(self, request: Request) -> None:
        """A dependency of every endpoint that is not open to all."""
        check_key(request, self.options.api_keys)

    async def body(self, request: Request) -> bytes:
        return await read_body(request, self.options.max_body_bytes, self.options.body_timeout_s)

    async def computed(self, request: Request, compute: Callable[[bytes], Any]) -> Response:
        """The JSON answer that `compute` makes of the body, away from the event loop."""
        body = await self.body(request)
        loop = asyncio.get_running_loop()
        return json_response(await loop.run_in_executor(self.generations.threads, compute, body))

    async def generated(self, request: Request, translate: Translate, writer_of: WriterOf) -> Response:
        """The answer of a generation endpoint. Everything is checked before a stream's 200 is sent."""
        body = await self.body(request)

        def translated() -> GenerationRequest:
            return translate(body, request.headers, self.model, self.options)

        try:
            running = await while_client_stays(request.receive, self.generations.start(translated))
            writer = writer_of(running.request, self.model)
            if running.request.stream:
                return SseResponse(writer, running, self.options.comment_interval_s)
            try:
                return json_response(await while_client_stays(request.receive, _whole(writer, running)))
            finally:
                running.close()
        except ClientLeft:
            _LOG.info("499 %s: the client left", request.url.path)
            return Response(status_code=499)


def json_response(value: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")


async def _whole(writer: AnswerWriter, running: RunningGeneration) -> Chunk:
    async for batch in running.batches(_SILENCE_S):
        for event in batch:
            if isinstance(event, Cancelled | Failed):
                raise ending_error(event)
            chunks(writer, event)
    return writer.whole()
