"""Runs the application until it is told to stop, and stops so that every client hears about it."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager

import uvicorn

_LOG = logging.getLogger(__name__)


class HttpServer(uvicorn.Server):
    """Ends when `should_exit` is set; signals are left to the process.

    First no connection is taken any more; then `stop_engine` gives every running request its last event, while the
    answers are sent to their end; what is left after the configuration's shutdown time is cut off.
    """

    def __init__(self, config: uvicorn.Config, stop_engine: Callable[[], None]) -> None:
        super().__init__(config)
        self._stop_engine = stop_engine

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Nothing: the library would end the process by the signal it caught."""
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for listening in self.servers:
            listening.close()
        stopping = asyncio.create_task(asyncio.to_thread(self._stop_engine))
        await super().shutdown(sockets)
        try:
            await stopping
        except TimeoutError as error:
            _LOG.error("%s", error)
