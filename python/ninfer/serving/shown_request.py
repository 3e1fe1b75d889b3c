"""What logs show of a request's first line: nothing in it may steer a terminal, fill a disk or tell a secret."""

from __future__ import annotations

from starlette.types import Scope

_SHOWN_PATH_CHARACTERS = 80
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"})


def shown_method(scope: Scope) -> str:
    """A client may send anything as a method; what HTTP does not know is a question mark."""
    method = str(scope["method"])
    return method if method in _METHODS else "?"


def shown_endpoint(scope: Scope) -> str:
    """The route that answered; for none, the path as it came, without what would steer a terminal."""
    route = getattr(scope.get("route"), "path", None)
    if isinstance(route, str):
        return route
    path = scope["raw_path"].decode("ascii", "backslashreplace")
    shown = "".join(one if one.isprintable() else "?" for one in path[:_SHOWN_PATH_CHARACTERS])
    return shown if len(path) <= _SHOWN_PATH_CHARACTERS else f"{shown}…"
