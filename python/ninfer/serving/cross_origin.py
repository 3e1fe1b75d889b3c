"""Which web pages of other origins may call."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

# A page sees no other header of an answer than the ones named here and a few that are always shown.
_SHOWN = ("x-request-id", "Retry-After")


def open_to_pages(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """`app` for pages of `origins`. It stands around everything that answers, so that a page can read a refusal too,
    also while there is no application yet."""
    if not origins:
        return app
    return CORSMiddleware(app, allow_origins=origins, allow_methods=["*"], allow_headers=["*"], expose_headers=_SHOWN)
