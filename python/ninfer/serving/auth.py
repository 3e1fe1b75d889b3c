"""API keys."""

from __future__ import annotations

import hmac
from collections.abc import Collection

from fastapi import Request

from ninfer.serving.http_errors import ApiError


def check_key(request: Request, keys: Collection[str]) -> None:
    """401 unless one of `keys` comes as bearer token or `x-api-key`; no keys mean no check."""
    if not keys:
        return
    scheme, _, token = _sent(request, "authorization").partition(b" ")
    given = token.strip() if scheme.lower() == b"bearer" else _sent(request, "x-api-key")
    # Every key is compared, in constant time, so that the time tells nothing about them.
    matches = [hmac.compare_digest(given, form) for key in keys for form in _forms(key)]
    if not any(matches):
        message = "the API key is missing or wrong; send it as `Authorization: Bearer KEY`"
        raise ApiError(401, message, code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"})


def _sent(request: Request, name: str) -> bytes:
    """The bytes of a header, of which the framework made characters one by one."""
    return request.headers.get(name, "").encode("latin-1")


def _forms(key: str) -> list[bytes]:
    """Headers have no encoding: terminals send UTF-8, some libraries Latin-1."""
    try:
        return [key.encode(), key.encode("latin-1")]
    except UnicodeEncodeError:
        return [key.encode()]
