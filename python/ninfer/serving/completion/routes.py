"""POST /completion."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from ninfer.serving.answer_shape import ErrorAnswer
from ninfer.serving.answers import NativeAnswer, NativeChunk
from ninfer.serving.completion.stream import NativeCompletionWriter
from ninfer.serving.completion.translate import native_completion_request
from ninfer.serving.completion.wire import NativeCompletionBody
from ninfer.serving.openapi import GENERATION_ERRORS, described
from ninfer.serving.server import Server


def add_completion_routes(router: APIRouter, server: Server) -> None:
    async def completion(request: Request) -> Response:
        """Continues a text or a list of token ids, in llama.cpp's own form."""
        return await server.generated(request, native_completion_request, NativeCompletionWriter)

    extra = described(
        NativeAnswer,
        errors=GENERATION_ERRORS,
        body=NativeCompletionBody,
        events=(NativeChunk, NativeAnswer, ErrorAnswer),
    )
    router.add_api_route("/completion", completion, methods=["POST"], openapi_extra=extra)
    router.add_api_route("/v1/completion", completion, methods=["POST"], include_in_schema=False)
