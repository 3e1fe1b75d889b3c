"""The one place where errors become HTTP: status, and the body that OpenAI clients expect.

400 malformed or unsupported field   401 key   404 unknown model or path   405 method   408 body did not come
413 body over the limit              429 queue full, with Retry-After   500 our bug   503 not ready or failed
"""

from __future__ import annotations

import http
import logging
from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ninfer.errors import NinferError, QueueFullError, RequestError
from ninfer.serving.shown_request import shown_endpoint, shown_method

_LOG = logging.getLogger(__name__)
_LONGEST_MESSAGE = 1000

_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "unavailable_error",
}


class ApiError(NinferError):
    """A request that ends with this status. `param` names the field at fault, `code` the case for programs."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status = status
        self.message = message
        self.param = param
        self.code = code
        self.headers = dict(headers or {})
        super().__init__(message)

    def body(self) -> dict[str, Any]:
        """The error object of the OpenAI protocol."""
        return {
            "error": {
                "message": _short(self.message),
                "type": _TYPES.get(self.status, "invalid_request_error"),
                "param": None if self.param is None else _short(self.param),
                "code": self.code,
            }
        }


def bad_field(param: str, message: str) -> ApiError:
    """400 for one field of the body; the message names it too, since many clients show nothing else."""
    return ApiError(400, f"{_short(param)}: {message}", param=param)


def unavailable(reason: str) -> ApiError:
    """503: the engine is not ready, or never will be again."""
    return ApiError(503, reason, code="unavailable")


def as_api_error(error: NinferError) -> ApiError:
    """What an error raised anywhere below means to a client."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, RequestError):
        return ApiError(400, str(error), param=error.param)
    if isinstance(error, QueueFullError):
        return ApiError(429, str(error), code="queue_full", headers={"Retry-After": str(error.retry_after)})
    return unavailable(str(error))


def error_response(error: ApiError) -> Response:
    return Response(orjson.dumps(error.body()), error.status, headers=error.headers, media_type="application/json")


def install_error_handlers(app: FastAPI) -> None:
    """Every error of every route leaves in one shape."""

    async def on_ninfer_error(_: Request, error: Exception) -> Response:
        assert isinstance(error, NinferError), f"registered for NinferError, called with {type(error)}"
        return error_response(as_api_error(error))

    async def on_http_exception(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException), f"registered for HTTPException, called with {type(error)}"
        detail = str(error.detail) or http.HTTPStatus(error.status_code).phrase
        return error_response(ApiError(error.status_code, detail, headers=error.headers))

    async def on_invalid_parameters(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError), f"called with {type(error)}"
        first = error.errors()[0]
        return error_response(bad_field(".".join(map(str, first["loc"][1:])), str(first["msg"])))

    async def on_our_bug(request: Request, error: Exception) -> Response:
        _LOG.error("%s %s failed", shown_method(request.scope), shown_endpoint(request.scope), exc_info=error)
        return error_response(ApiError(500, "internal error; the server's log has the details"))

    app.add_exception_handler(NinferError, on_ninfer_error)
    app.add_exception_handler(HTTPException, on_http_exception)
    app.add_exception_handler(RequestValidationError, on_invalid_parameters)
    app.add_exception_handler(Exception, on_our_bug)


def _short(text: str) -> str:
    """Field names and values come from clients: neither megabytes nor what UTF-8 cannot hold go back."""
    text = text.encode(errors="replace").decode()
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}…"
