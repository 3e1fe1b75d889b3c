"""A client made of a socket and nothing else, so that a test decides when to read, to close, and to half-close."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """A whole answer; body: without the framing of the transfer."""

    status: int
    headers: dict[str, str]
    body: bytes


class RawConnection:
    """Life: `open`; `ask` and then `answer` or `lines`, as often as wanted; `close` or `leave`, always."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int) -> RawConnection:
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=16 << 20))

    async def ask(self, path: str, body: Any, headers: str = "") -> None:
        content = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {len(content)}\r\n\r\n"
        self._writer.write(head.encode() + content)
        await self._writer.drain()

    async def answer(self) -> Answer:
        """Reads one answer to its end; asyncio.IncompleteReadError if it breaks off."""
        status, headers = await self.head()
        if headers.get("transfer-encoding") != "chunked":
            return Answer(status, headers, await self._reader.readexactly(int(headers["content-length"])))
        body = b""
        while piece := await self.piece():
            body += piece
        return Answer(status, headers, body)

    async def head(self) -> tuple[int, dict[str, str]]:
        first, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
        pairs = (line.split(": ", 1) for line in lines)
        return int(first.split(" ")[1]), {name.lower(): value for name, value in pairs}

    async def piece(self) -> bytes:
        """The next piece of a stream, as the server wrote it; nothing at its end."""
        size = int((await self._reader.readline()).strip() or b"0", 16)
        return (await self._reader.readexactly(size + 2))[:-2]

    async def close(self) -> None:
        self._writer.transport.abort()

    async def half_close(self) -> bytes:
        """Says that nothing more will be asked; what still came before the server closed, too."""
        self._writer.write_eof()
        return await self._reader.read(-1)
