"""POST /tokenize, /detokenize and /apply-template: what the frontend makes of text, without computing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
from fastapi import APIRouter, Request, Response

from ninfer.serving.decode import checked, decode_object, without_nulls
from ninfer.serving.http_errors import bad_field
from ninfer.serving.info_answers import DetokenizeAnswer, RenderAnswer, TokenizeAnswer
from ninfer.serving.openai.chat_prompt import chat_prompt
from ninfer.serving.openai.wire import RenderFields
from ninfer.serving.openapi import TEXT_ERRORS, described
from ninfer.serving.served_model import ServedModel
from ninfer.serving.server import Server
from ninfer.serving.text_wire import DetokenizeBody, TokenizeBody

_PIECE_TOKENS = 4096


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
    most, found = model.most_text_bytes, len(fields.content.encode())
    if found > most:
        raise bad_field("content", f"{found} bytes; at most {most} are tokenised at once")
    tokenizer = model.frontend.tokenizer
    ids = tokenizer.encode(
        fields.content, add_special=fields.add_special is True, parse_special=fields.parse_special is not False
    )
    if not fields.with_pieces:
        return {"tokens": _array(ids, lambda token_id: token_id)}
    return {"tokens": _array(ids, lambda token_id: {"id": token_id, "piece": _piece(tokenizer.token_bytes(token_id))})}


def _array(ids: list[int], shown: Callable[[int], Any]) -> orjson.Fragment:
    """The JSON array of what is shown of each id. Made in pieces: the objects of all at once would take gigabytes, and
    nothing else runs while a piece is made."""
    starts = range(0, len(ids), _PIECE_TOKENS)
    pieces = [orjson.dumps([shown(token_id) for token_id in ids[at : at + _PIECE_TOKENS]])[1:-1] for at in starts]
    return orjson.Fragment(b"[" + b",".join(pieces) + b"]")


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
    return {"prompt": model.frontend.render_chat(prompt).text}
