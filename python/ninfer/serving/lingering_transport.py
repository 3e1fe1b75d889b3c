"""Closing a connection so that the other side can still read what was written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

# What is thrown away of what a client still sends after it was refused, and for how long.
_MOST_BYTES = 64 << 20
_LINGER_S = 5.0


class LingeringTransport(asyncio.Transport):
    """Closing a socket on which something unread has come, or still comes, resets it, and a client that sends its whole
    body first loses the answer. So `close` only closes the writing half while `may_send` says that more may come; what
    comes then goes to `discard`, and the client's own end, or a limit of bytes or time, closes the rest.
    """

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, may_send: Callable[[], bool]
    ) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._may_send = may_send
        self._timer: asyncio.TimerHandle | None = None
        self._left_bytes = _MOST_BYTES
        self._closing = False

    @property
    def lingers(self) -> bool:
        """Whether only the client's end is waited for."""
        return self._timer is not None

    def close(self) -> None:
        if self._closing or self._transport.is_closing() or not self._may_send():
            self._closing = True
            if self._timer is None:
                self._transport.close()
            return
        self._closing = True
        self._timer = self._loop.call_later(_LINGER_S, self._transport.abort)
        with suppress(OSError):  # the connection is gone already, which shows when it is read
            self._transport.write_eof()
        self._transport.resume_reading()

    def discard(self, data: bytes) -> None:
        self._left_bytes -= len(data)
        if self._left_bytes < 0:
            self._transport.abort()

    def lost(self) -> None:
        """The connection has ended."""
        if self._timer is not None:
            self._timer.cancel()

    def is_closing(self) -> bool:
        return self._closing or self._transport.is_closing()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self.is_closing():
            self._transport.write(data)

    def pause_reading(self) -> None:
        if not self.lingers:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def abort(self) -> None:
        self._transport.abort()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._transport.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size()
