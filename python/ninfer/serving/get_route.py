"""Routes that answer GET, and HEAD with the headers alone."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Response


def add_get_route(
    router: APIRouter, path: str, endpoint: Callable[..., Coroutine[Any, Any, Response]], **options: Any
) -> None:
    """`options`: of the route. The page describes GET only."""
    router.add_api_route(path, endpoint, methods=["GET"], **options)
    router.add_api_route(path, endpoint, methods=["HEAD"], **{**options, "include_in_schema": False})
