"""From the engine's thread to the event loop: one hand-over per round, taken apart on the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from ninfer.engine.events import Cancelled, EngineEvent, Failed, Finished
from ninfer.serving.loop_mailbox import LoopMailbox

# A reader that lags further behind than this is no reader; at fifty tokens a second, it has not read for minutes.
MAX_WAITING_EVENTS = 8192


class RequestEvents:
    """The events of one request, in order; lives on the event loop.

    on_lag is called, once, when more than MAX_WAITING_EVENTS wait to be taken. It has to see to it that few follow.
    """

    def __init__(self) -> None:
        self._waiting: list[EngineEvent] = []
        self._arrived = asyncio.Event()
        self._lagged = False
        self.on_lag: Callable[[], None] = lambda: None
        self.ended = False
        self.abandoned = False

    def push(self, events: list[EngineEvent]) -> None:
        self.ended = self.ended or isinstance(events[-1], Finished | Cancelled | Failed)
        if self.abandoned:
            return
        self._waiting += events
        self._arrived.set()
        if len(self._waiting) > MAX_WAITING_EVENTS and not self._lagged and not self.ended:
            self._lagged = True
            self.on_lag()

    async def take(self, timeout_s: float) -> list[EngineEvent]:
        """Everything that has come, at least one event; nothing if none comes for `timeout_s` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._arrived.wait()
        self._arrived.clear()
        taken, self._waiting = self._waiting, []
        return taken


class EventRouter:
    """Gives each request its events. `hand_over` and `close` may be called from any thread, the rest on the event loop.

    Life: `bind`; `hand_over` as often as there is something to tell; `close`; `unbind`. Neither of the last two has to
    wait for the engine: what it says after `unbind`, or to a loop that is closed, is dropped.

    An entry begins with `claim` or with the first event, whichever comes first, and ends once the request has ended and
    its reader has let go. Every request ends, so no entry stays.
    """

    def __init__(self) -> None:
        self._mailbox: LoopMailbox | None = None
        self._entries: dict[int, RequestEvents] = {}
        self.closed = asyncio.Event()

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Before the first request."""
        self._mailbox = LoopMailbox(loop)

    def unbind(self) -> None:
        """On the loop, after the last request. Nothing comes any more, so whatever has not ended yet ends here."""
        self._bound.close()
        self._end_all("shutdown")

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._bound.loop

    @property
    def open_entries(self) -> int:
        return len(self._entries)

    def hand_over(self, batch: list[tuple[int, list[EngineEvent]]]) -> None:
        self._bound.post(partial(self._dispatch, batch))

    def close(self, reason: str) -> None:
        """From any thread, once no request is taken any more: whatever has not ended yet ends with Cancelled."""
        self._bound.post(partial(self._close, reason))

    def claim(self, request_id: int) -> RequestEvents:
        return self._entries.setdefault(request_id, RequestEvents())

    def release(self, request_id: int) -> None:
        """The reader wants no more; what still comes is dropped."""
        entry = self.claim(request_id)
        entry.abandoned = True
        if entry.ended:
            del self._entries[request_id]

    @property
    def _bound(self) -> LoopMailbox:
        assert self._mailbox is not None, "the router is bound before the first request"
        return self._mailbox

    def _dispatch(self, batch: list[tuple[int, list[EngineEvent]]]) -> None:
        for request_id, events in batch:
            entry = self.claim(request_id)
            entry.push(events)
            if entry.ended and entry.abandoned:
                del self._entries[request_id]

    def _close(self, reason: str) -> None:
        self.closed.set()
        self._end_all(reason)

    def _end_all(self, reason: str) -> None:
        self._dispatch([(name, [Cancelled(reason)]) for name, entry in self._entries.items() if not entry.ended])
