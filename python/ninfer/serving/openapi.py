"""The OpenAPI page. Bodies are decoded by us, so their types are told to the page separately."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

_REFERENCE = "#/components/schemas/{model}"


def typed_body(model: type[BaseModel]) -> dict[str, Any]:
    """What a route says about its body."""
    schema = {"$ref": _REFERENCE.format(model=model.__name__)}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def install_openapi(app: FastAPI, bodies: Sequence[type[BaseModel]]) -> None:
    """The page is made when it is first asked for."""

    def page() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
            _, types = models_json_schema([(body, "validation") for body in bodies], ref_template=_REFERENCE)
            schema.setdefault("components", {}).setdefault("schemas", {}).update(types["$defs"])
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = page  # type: ignore[method-assign]  # the documented way to extend the page
