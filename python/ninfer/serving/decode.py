"""Request bodies: read within limits, decoded as JSON whatever the Content-Type, checked against a typed model.

The framework's own decoding is not used: it wants a Content-Type that curl does not send, answers 422, and fails on
what it cannot put into its own error message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import orjson
from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect

from ninfer.serving.body_budget import BodyShare
from ninfer.serving.client_presence import ClientLeft
from ninfer.serving.http_errors import ApiError, bad_field
from ninfer.serving.json_size import check_json_size

Body = TypeVar("Body", bound=BaseModel)
# The rest of a refused body would be taken for the next request.
_CLOSE = {"Connection": "close"}


async def read_body(request: Request, max_bytes: int, timeout_s: float, share: BodyShare) -> bytes:
    """The whole body. 413 over `max_bytes`, before it was read if the client said so; 408 after `timeout_s` without
    progress; 503 if `share` cannot grow. Raises ClientLeft if the client left."""
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and len(declared) <= 20 and int(declared) > max_bytes:
        raise _too_large(max_bytes)
    body = bytearray()
    pieces = request.stream()
    while True:
        try:
            async with asyncio.timeout(timeout_s):
                piece = await anext(pieces, None)
        except TimeoutError:
            message = f"no byte of the body came for {timeout_s:g} seconds"
            raise ApiError(408, message, code="body_timeout", headers=_CLOSE) from None
        except ClientDisconnect:
            raise ClientLeft from None
        if piece is None:
            return bytes(body)
        body += piece
        if len(body) > max_bytes:
            raise _too_large(max_bytes)
        share.grow_to(len(body))


def decode_object(body: bytes) -> dict[str, Any]:
    """The JSON object in `body`; 400 for everything else.

    Refused are NaN, infinities, lone surrogates, invalid UTF-8, numbers beyond a double, more than 1,024 levels, and
    what `check_json_size` refuses.
    """
    check_json_size(body)
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ApiError(400, f"the body is not valid JSON: {error}", code="invalid_json") from None
    if not isinstance(value, dict):
        raise ApiError(400, f"the body must be a JSON object, found {json_type(value)}", code="invalid_json")
    return value


def without_nulls(fields: Mapping[str, Any]) -> dict[str, Any]:
    """null means absent."""
    return {name: value for name, value in fields.items() if value is not None}


def checked(model: type[Body], fields: Mapping[str, Any]) -> Body:
    """The typed body; 400 naming the first field that does not fit, or that the endpoint does not know."""
    if model.model_config.get("extra") == "forbid":
        for name in fields:
            if name not in model.model_fields:
                raise bad_field(name, "there is no such field")
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        path, message = _deepest(fields, error)
        raise bad_field(path, message) from None


def json_type(value: object) -> str:
    """What JSON calls the type of a decoded value."""
    if value is None:
        return "null"
    names = ((bool, "a boolean"), (str, "a string"), (int | float, "a number"), (list, "an array"), (dict, "an object"))
    return next(name for kind, name in names if isinstance(value, kind))


def _deepest(fields: Mapping[str, Any], error: ValidationError) -> tuple[str, str]:
    """Path and message of the error that says most: every alternative of a union has one, the best fit the longest."""
    details = error.errors(include_url=False, include_context=False, include_input=False)
    paths = [_path(fields, detail["loc"], detail["type"] == "missing") for detail in details]
    index = max(range(len(details)), key=lambda index: (len(paths[index]), -index))
    return paths[index], details[index]["msg"]


def _path(fields: Mapping[str, Any], location: Sequence[int | str], missing: bool) -> str:
    """`messages[0].content` for a location that also holds the alternatives of unions, which no client knows."""
    path = ""
    value: Any = fields
    for index, part in enumerate(location):
        if isinstance(value, dict) and isinstance(part, str) and part in value:
            path += f".{part}"
            value = value[part]
        elif isinstance(value, list) and isinstance(part, int):
            path += f"[{part}]"
            value = value[part]
        elif missing and index == len(location) - 1:
            path += f".{part}"
    return path.removeprefix(".") or "body"


def _too_large(max_bytes: int) -> ApiError:
    return ApiError(413, f"the body is larger than {max_bytes} bytes", code="body_too_large", headers=_CLOSE)
