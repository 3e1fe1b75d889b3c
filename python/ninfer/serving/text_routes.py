"""POST /tokenize, /detokenize and /apply-template: what the frontend makes of text, without computing."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from ninfer.serving.answers import DetokenizeAnswer, RenderAnswer, TokenizeAnswer
from ninfer.serving.decode import checked, decode_object, without_nulls
from ninfer.serving.openai.chat_prompt import chat_prompt
from ninfer.serving.openai.wire import RenderFields
from ninfer.serving.openapi import TEXT_ERRORS, described
from ninfer.serving.served_model import ServedModel
from ninfer.serving.server import Server
from ninfer.serving.text_wire import DetokenizeBody, TokenizeBody


def add_text_routes(router: APIRouter, server: Server) -> None:
    async def tokenize(request: Request) -> Response:
        """Token ids of a text."""
        return await server.computed(request, lambda body: _tokenized(body, server.model))

    async def detokenize(request: Request) -> Response:
        """The text of token ids."""
        return await server.computed(request, lambda body: _detokenized(body, server.model))

    async def apply_template(request: Request) -> Response:
        """The prompt that the chat template makes of a conversation."""
        return await server.computed(request, lambda body: _rendered(body, server.model))

    for name, endpoint, body, answer in (
        ("/tokenize", tokenize, TokenizeBody, TokenizeAnswer),
        ("/detokenize", detokenize, DetokenizeBody, DetokenizeAnswer),
        ("/apply-template", apply_template, RenderFields, RenderAnswer),
    ):
        extra = described(answer, errors=TEXT_ERRORS, body=body)
        router.add_api_route(name, endpoint, methods=["POST"], openapi_extra=extra)
        router.add_api_route(f"/v1{name}", endpoint, methods=["POST"], include_in_schema=False)


def _tokenized(body: bytes, model: ServedModel) -> dict[str, Any]:
    fields = checked(TokenizeBody, without_nulls(decode_object(body)))
    tokenizer = model.frontend.tokenizer
    ids = tokenizer.encode(
        fields.content, add_special=fields.add_special is True, parse_special=fields.parse_special is not False
    )
    if fields.with_pieces:
        return {"tokens": [{"id": token_id, "piece": _piece(tokenizer.token_bytes(token_id))} for token_id in ids]}
    return {"tokens": ids}


def _piece(content: bytes) -> str | list[int]:
    """The text of a token, or its bytes where they are only a part of a character."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return list(content)


def _detokenized(body: bytes, model: ServedModel) -> dict[str, Any]:
    fields = checked(DetokenizeBody, without_nulls(decode_object(body)))
    return {"content": model.frontend.tokenizer.decode(fields.tokens, skip_special=False)}


def _rendered(body: bytes, model: ServedModel) -> dict[str, Any]:
    raw = without_nulls(decode_object(body))
    prompt = chat_prompt(checked(RenderFields, raw), raw)
    return {"prompt": model.frontend.encode_chat(prompt).text}
