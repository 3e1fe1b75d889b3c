"""Everything that the endpoints share, and the way of a generation request through it."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson
from fastapi import Request, Response

from ninfer.engine.events import Cancelled, Failed
from ninfer.serving.answer_writer import AnswerWriter
from ninfer.serving.auth import check_key
from ninfer.serving.body_budget import BodyBudget, BodyShare
from ninfer.serving.client_presence import ClientLeft, while_client_stays
from ninfer.serving.decode import read_body
from ninfer.serving.engine_port import EnginePort
from ninfer.serving.generation_request import GenerationRequest
from ninfer.serving.held_answer import HeldAnswer
from ninfer.serving.http_errors import ApiError
from ninfer.serving.request_record import CLIENT_LEFT_STATUS, note_client_left, note_generation
from ninfer.serving.running_generation import Generations, RunningGeneration
from ninfer.serving.served_model import ServedModel
from ninfer.serving.serving_options import ServingOptions
from ninfer.serving.sse import SseResponse, chunks, ending_error
from ninfer.serving.text_workers import TextWorkers

_SILENCE_S = 60.0
# Of an endpoint that turns text into something else; a body of ids can stand for many times its size.
MAX_ANSWER_BYTES = 64 << 20

Translate = Callable[[bytes, Mapping[str, str], ServedModel, ServingOptions], GenerationRequest]
WriterOf = Callable[[GenerationRequest, ServedModel], AnswerWriter]


@dataclass(frozen=True)
class Server:
    """What the endpoints work with; lives as long as the application."""

    engine: EnginePort
    model: ServedModel
    options: ServingOptions
    generations: Generations
    text_workers: TextWorkers
    bodies: BodyBudget
    answers: BodyBudget

    async def check_key(self, request: Request) -> None:
        """A dependency of every endpoint that is not open to all."""
        check_key(request, self.options.api_keys)

    async def computed(self, request: Request, compute: Callable[[bytes], Any]) -> Response:
        """The JSON answer that `compute` makes of the body, away from the event loop."""
        try:
            with self.bodies.share() as share:
                body = await self._body(request, share)
                work = partial(_answer, compute, body)
                del body
                working = self.text_workers.run(work, share)
                del work
                content = await while_client_stays(request.receive, working)
        except ClientLeft:
            return _left(request)
        with self.answers.share() as share:
            share.grow_to(len(content))
            return HeldAnswer(content, share)

    async def answered(self, request: Request, work: Coroutine[Any, Any, Response]) -> Response:
        """What `work` returns, unless the client leaves before that: then `work` is cancelled. For requests that have
        no body, or one that was read."""
        try:
            return await while_client_stays(request.receive, work)
        except ClientLeft:
            return _left(request)

    async def generated(self, request: Request, translate: Translate, writer_of: WriterOf) -> Response:
        """The answer of a generation endpoint. Everything is checked before a stream's 200 is sent."""
        arrived = time.monotonic()
        try:
            with self.bodies.share() as share:
                body = await self._body(request, share)
                prepare = partial(translate, body, request.headers, self.model, self.options)
                del body
                starting = self.generations.start(prepare, share, arrived)
                del prepare
                running = await while_client_stays(request.receive, starting)
        except ClientLeft:
            return _left(request)
        note_generation(request.scope, running)
        writer = writer_of(running.request, self.model)
        if running.request.stream:
            return SseResponse(writer, running, self.options.comment_interval_s)
        try:
            return await self.answered(request, _whole(writer, running))
        finally:
            running.close()

    async def _body(self, request: Request, share: BodyShare) -> bytes:
        return await read_body(request, self.options.max_body_bytes, self.options.body_timeout_s, share)


def _left(request: Request) -> Response:
    """Nobody reads it; the status is for whoever counts."""
    note_client_left(request.scope)
    return Response(status_code=CLIENT_LEFT_STATUS)


def json_response(value: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")


def _answer(compute: Callable[[bytes], Any], body: bytes) -> bytes:
    content = orjson.dumps(compute(body))
    if len(content) > MAX_ANSWER_BYTES:
        raise ApiError(400, f"the answer would be larger than {MAX_ANSWER_BYTES} bytes", code="answer_too_large")
    return content


async def _whole(writer: AnswerWriter, running: RunningGeneration) -> Response:
    async for batch in running.batches(_SILENCE_S):
        for event in batch:
            if isinstance(event, Cancelled | Failed):
                raise ending_error(event)
            chunks(writer, event)
    return json_response(writer.whole())
