"""The OpenAPI page. Bodies are decoded and answers written by us, so their types are told to the page separately."""

from __future__ import annotations

import http
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request, Response, params
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from ninfer.serving.answer_shape import ErrorAnswer
from ninfer.serving.get_route import add_get_route

_REFERENCE = "#/components/schemas/{model}"
# What any request may meet: late or large headers, our bug, a server that is loading, has failed or has too much to do.
_ANY_ERROR = (408, 431, 500, 503)
LOCKED_ERRORS = (401,)
TEXT_ERRORS = (400, 401, 413, 429)
GENERATION_ERRORS = (400, 401, 404, 413, 429)


def described(
    answer: type[BaseModel],
    *,
    errors: Sequence[int] = (),
    body: type[BaseModel] | None = None,
    events: Sequence[type[BaseModel]] = (),
    unavailable: type[BaseModel] = ErrorAnswer,
) -> dict[str, Any]:
    """What a route says about itself. events: what a stream of it consists of; unavailable: the body of a 503."""
    responses = {"200": _response("The answer", answer, events)}
    for status in sorted({*_ANY_ERROR, *errors}):
        shape = unavailable if status == 503 else ErrorAnswer
        responses[str(status)] = _response(http.HTTPStatus(status).phrase, shape)
    extra: dict[str, Any] = {"responses": responses}
    if body is not None:
        extra["requestBody"] = {"required": True, "content": {"application/json": {"schema": _reference(body)}}}
    return extra


def install_openapi(app: FastAPI, types: Sequence[type[BaseModel]], lock: Sequence[params.Depends]) -> None:
    """GET /openapi.json; the page is made when it is first asked for. types: all that `described` was told, by name."""

    def page() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
            _, shapes = models_json_schema([(model, "validation") for model in types], ref_template=_REFERENCE)
            schema["components"] = {"schemas": shapes["$defs"]}
            for operations in schema["paths"].values():
                for operation in operations.values():
                    # The framework's own, which never comes about.
                    operation["responses"].pop("422", None)
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = page  # type: ignore[method-assign]  # the documented way to extend the page

    async def openapi(_: Request) -> Response:
        return JSONResponse(app.openapi())

    add_get_route(app.router, "/openapi.json", openapi, dependencies=lock, include_in_schema=False)


def _reference(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": _REFERENCE.format(model=model.__name__)}


def _response(description: str, model: type[BaseModel], events: Sequence[type[BaseModel]] = ()) -> dict[str, Any]:
    content: dict[str, Any] = {"application/json": {"schema": _reference(model)}}
    if events:
        # The page has no word for what the text of a stream consists of: some readers take the schema for that of the
        # text, others for that of one event.
        names = ", ".join(event.__name__ for event in events)
        content["text/event-stream"] = {
            "schema": {
                "type": ["string", "object"],
                "properties": {"data": {"type": "string"}},
                "description": f"Server-sent events; the data of each is one of: {names}.",
            }
        }
    return {"description": description, "content": content}
