"""Work that is only worth doing while its client is there."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

Result = TypeVar("Result")


class ClientLeft(Exception):  # noqa: N818  # it is no error, and never leaves serving
    """The connection was closed, or half-closed, before the answer was complete."""


async def while_client_stays(receive: Receive, work: Coroutine[Any, Any, Result]) -> Result:
    """The result of `work`; it is cancelled and ClientLeft raised once the client has left.

    receive: of a request whose body was read, so that the next message is the end of the connection.
    """
    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_disconnect(receive))
    try:
        await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientLeft
    finally:
        working.cancel()
        watching.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
