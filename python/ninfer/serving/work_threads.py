"""Threads that do work for the event loop, and forget what nobody waits for any more."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from ninfer.errors import NinferError

Result = TypeVar("Result")


class Job(Generic[Result]):
    """Life: waiting; begun, when a thread takes `work` out of it; gone, once no thread holds the work any more.

    Lives on the event loop. gone is called there, once, whoever still waits for the result. unwanted is called there
    with a result that came although the job had been dropped.
    """

    def __init__(
        self, work: Callable[[], Result], gone: Callable[[], None], unwanted: Callable[[Result], None] | None
    ) -> None:
        self.work: Callable[[], Result] | None = work
        self.loop = asyncio.get_running_loop()
        self.result: asyncio.Future[Result] = self.loop.create_future()
        self._gone = gone
        self._unwanted = unwanted

    def leave(self) -> None:
        """The work is nowhere any more."""
        self.work = None
        self._gone()

    def settle(self, value: Result | None, error: BaseException | None) -> None:
        """The work was done; `value` unless there is an error."""
        self.leave()
        if not self.result.cancelled():
            if error is not None:
                self.result.set_exception(error)
            else:
                self.result.set_result(value)  # type: ignore[arg-type]  # without an error it is a result
        elif error is None:
            self._drop_value(value)

    def disown(self) -> None:
        """Nobody waits for the result any more, be it there or not."""
        if not self.result.done():
            self.result.cancel()
        elif not self.result.cancelled() and self.result.exception() is None:
            self._drop_value(self.result.result())

    def _drop_value(self, value: Any) -> None:
        if self._unwanted is not None:
            self._unwanted(value)


class WorkThreads:
    """Begins jobs in the order of their submission. All but the threads lives on the event loop.

    Work may hold megabytes of a request's body. So a job that is dropped before it begins leaves the queue at once, and
    a thread lets go of the work before it takes the next.
    """

    def __init__(self, count: int, name: str) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[Job[Any]] = deque()
        self._closed = False
        for number in range(count):
            threading.Thread(target=self._serve, name=f"{name}-{number}", daemon=True).start()

    def submit(
        self, work: Callable[[], Result], gone: Callable[[], None], unwanted: Callable[[Result], None] | None = None
    ) -> Job[Result]:
        """Whoever waits for the job's result must `drop` it if the wait ends early."""
        job = Job(work, gone, unwanted)
        with self._changed:
            self._waiting.append(job)
            self._changed.notify()
        return job

    def drop(self, job: Job[Any]) -> None:
        job.disown()
        with self._changed:
            if job not in self._waiting:
                return
            self._waiting.remove(job)
        job.leave()

    def close(self) -> None:
        """What waits is dropped; what has begun is left to itself."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for job in list(self._waiting):
            self.drop(job)

    def _serve(self) -> None:
        while (job := self._next()) is not None:
            loop = job.loop
            outcome = _done(_taken(job))
            # A loop that is closed has nobody left who waits.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(job.settle, *outcome)
            del job, outcome

    def _next(self) -> Job[Any] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._waiting)
            return None if self._closed else self._waiting.popleft()


def _taken(job: Job[Result]) -> list[Callable[[], Result]]:
    """The work alone, so that nothing but the list holds it."""
    assert job.work is not None, "a job that waits has work"
    work, job.work = job.work, None
    return [work]


def _done(cell: list[Callable[[], Result]]) -> tuple[Result | None, BaseException | None]:
    try:
        return cell.pop()(), None
    except NinferError as error:
        # An answer and no bug: where it came about is of no interest, and those frames hold the body.
        error.__traceback__ = error.__context__ = None
        return None, error
    except BaseException as error:  # raised again where the result is awaited
        return None, error
