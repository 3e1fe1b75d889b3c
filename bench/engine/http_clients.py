"""The clients of http_overhead.py, in a process of their own.

    python bench/engine/http_clients.py PORT

Keeps eight streams open, and does what is asked for by lines on stdin, each of which is answered by one line of JSON:
`first N` ends one stream, then sends N short requests one after the other and tells when the first token of each
arrived; `render` sends a long conversation; `stop` ends everything. Times are those of time.perf_counter, which all
processes of a machine share.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # so that this also runs as a script

from tests.python.serving.raw_client import RawConnection

STREAMS = 8
# Prompts of the short requests begin with it.
MARKER = 200
LONG_TOKENS = 240_000


async def stream(port: int, number: int, received: list[int]) -> None:
    """An endless answer: begun again when the server has ended it."""
    while True:
        connection = await RawConnection.open(port)
        try:
            await connection.ask("/completion", {"prompt": [30 + number] * 16, "stream": True, "ignore_eos": True})
            status, _ = await connection.head()
            assert status == 200, status
            while await connection.piece():
                received[0] += 1
        finally:
            await connection.close()


async def first_token_times(port: int, count: int) -> list[float]:
    times = []
    for _ in range(count):
        connection = await RawConnection.open(port)
        await connection.ask("/completion", {"prompt": [MARKER] * 4, "n_predict": 2, "stream": True})
        await connection.head()
        await connection.piece()
        times.append(time.perf_counter())
        await connection.close()
    return times


async def rendered(port: int) -> tuple[int, float]:
    """Status and seconds of a conversation that is too long for any model here, and is refused once that is known."""
    connection = await RawConnection.open(port)
    words = "one two three <b> " * (LONG_TOKENS // 6)
    start = time.perf_counter()
    await connection.ask("/v1/chat/completions", {"messages": [{"role": "user", "content": words}]})
    answer = await connection.answer()
    await connection.close()
    return answer.status, time.perf_counter() - start


async def main(port: int) -> None:
    received = [0]
    streams = [asyncio.create_task(stream(port, number, received)) for number in range(STREAMS)]
    while True:
        command, *arguments = (await asyncio.to_thread(sys.stdin.readline)).split() or ["stop"]
        if command == "first":
            # It makes room for them.
            streams[0].cancel()
            answer: object = await first_token_times(port, int(arguments[0]))
        elif command == "render":
            answer = await rendered(port)
        else:
            answer = received[0]
        print(json.dumps(answer), flush=True)
        if command == "stop":
            break
    for task in streams:
        task.cancel()
    await asyncio.gather(*streams, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
