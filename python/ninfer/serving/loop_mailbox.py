"""Calls that other threads want made on the event loop, at the least cost for the thread that wants them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from ninfer import native


class LoopMailbox:
    """As the loop's `call_soon_threadsafe`, but `post` keeps the interpreter.

    That one writes to a socket and lets go of the interpreter for it, in the very moment in which it wakes the loop's
    thread. The loop takes it, and whoever posted waits until the loop has nothing left to do. From here the poster goes
    on, as an engine does to its next unit, and the loop runs once the interpreter is free.

    Calls are made in the order of their posting. Among the loop's other work they have no place: what was given to
    `call_soon_threadsafe` earlier may run later.

    Life: made on the loop; `post` from any thread; `close` on the loop, after which nothing is called. A loop that is
    closed before calls nothing either.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._posted: deque[Callable[[], None]] = deque()
        # The loop's reader refers to this object, so the descriptor stays open as long as the loop watches it.
        self._wake_up: native.WakeUp | None = native.WakeUp()
        loop.add_reader(self._wake_up.file_descriptor, self._collect)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def post(self, call: Callable[[], None]) -> None:
        # Held here, it stays open until it is signalled, even if the mailbox is closed meanwhile.
        wake_up = self._wake_up
        if wake_up is None or self._loop.is_closed():
            return
        self._posted.append(call)
        wake_up.signal()

    def close(self) -> None:
        """Makes the calls that were posted before."""
        if self._wake_up is None:
            return
        if not self._loop.is_closed():
            self._loop.remove_reader(self._wake_up.file_descriptor)
        self._wake_up = None
        self._make_calls()

    def _collect(self) -> None:
        assert self._wake_up is not None, "the loop watches no closed mailbox"
        # First: what is posted from now on signals once more.
        self._wake_up.acknowledge()
        self._make_calls()

    def _make_calls(self) -> None:
        # No more than what is there now, or a poster could keep the loop from everybody else.
        for _ in range(len(self._posted)):
            if not self._posted:
                return  # a call has closed the mailbox, which made the others
            call = self._posted.popleft()
            try:
                call()
            except (SystemExit, KeyboardInterrupt):
                # They end the loop. It may be run again, and then makes the other calls.
                if self._wake_up is not None:
                    self._wake_up.signal()
                raise
            except BaseException as error:  # the loop's own callbacks end so too, and the others go on
                self._loop.call_exception_handler({"message": f"Exception in {call!r}", "exception": error})
