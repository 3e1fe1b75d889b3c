"""POST /v1/chat/completions and /v1/completions."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from ninfer.serving.answer_shape import ErrorAnswer
from ninfer.serving.answers import ChatAnswer, ChatChunk, CompletionAnswer, CompletionChunk
from ninfer.serving.openai.chat_stream import ChatWriter
from ninfer.serving.openai.completion_stream import CompletionWriter
from ninfer.serving.openai.translate import chat_request, completion_request
from ninfer.serving.openai.wire import ChatBody, CompletionBody
from ninfer.serving.openapi import GENERATION_ERRORS, described
from ninfer.serving.server import Server


def add_openai_routes(router: APIRouter, server: Server) -> None:
    async def chat_completions(request: Request) -> Response:
        """Answers a conversation."""
        return await server.generated(request, chat_request, ChatWriter)

    async def completions(request: Request) -> Response:
        """Continues a text or a list of token ids."""
        return await server.generated(request, completion_request, CompletionWriter)

    for prefix in ("/v1", ""):
        shown = bool(prefix)
        router.add_api_route(
            f"{prefix}/chat/completions",
            chat_completions,
            methods=["POST"],
            include_in_schema=shown,
            openapi_extra=described(
                ChatAnswer, errors=GENERATION_ERRORS, body=ChatBody, events=(ChatChunk, ErrorAnswer)
            ),
        )
        router.add_api_route(
            f"{prefix}/completions",
            completions,
            methods=["POST"],
            include_in_schema=shown,
            openapi_extra=described(
                CompletionAnswer,
                errors=GENERATION_ERRORS,
                body=CompletionBody,
                events=(CompletionChunk, ErrorAnswer),
            ),
        )
