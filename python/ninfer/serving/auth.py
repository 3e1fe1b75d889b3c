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
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    given = token.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key", "")
    # Every key is compared, in constant time, so that the time tells nothing about them.
    matches = [hmac.compare_digest(given.encode(), key.encode()) for key in keys]
    if not any(matches):
        message = "the API key is missing or wrong; send it as `Authorization: Bearer KEY`"
        raise ApiError(401, message, code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"})
