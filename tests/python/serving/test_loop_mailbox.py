"""What is posted to an event loop is called there: in order, all of it, and the poster keeps the interpreter."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from ninfer import native
from ninfer.serving.loop_mailbox import LoopMailbox
from tests.python.serving.live_server import wait_until

LONG_S = 60.0
THREADS = 4


@contextmanager
def running() -> Iterator[LoopMailbox]:
    """The mailbox of a loop that runs in a thread and has nothing else to do; both are closed after the block."""
    loop = asyncio.new_event_loop()
    mailbox = LoopMailbox(loop)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield mailbox
    finally:
        mailbox.post(loop.stop)
        thread.join(LONG_S)
        assert not thread.is_alive(), "the loop was not woken"
        mailbox.close()
        loop.close()


def from_threads(work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(name,)) for name in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG_S)


@contextmanager
def switch_interval(seconds: float) -> Iterator[None]:
    """After how long a thread that wants the interpreter makes another one let go of it."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(seconds)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def test_each_poster_s_calls_are_made_in_its_order() -> None:
    called: list[tuple[int, int]] = []
    seen_on: set[int] = set()

    def note(name: int, number: int) -> None:
        called.append((name, number))
        seen_on.add(threading.get_ident())

    def post(name: int) -> None:
        for number in range(2000):
            mailbox.post(partial(note, name, number))

    with running() as mailbox:
        from_threads(post)
        wait_until(lambda: len(called) == THREADS * 2000, LONG_S)
    for name in range(THREADS):
        assert [number for one, number in called if one == name] == list(range(2000))
    assert len(seen_on) == 1 and threading.get_ident() not in seen_on


def test_no_wake_up_is_lost() -> None:
    """Each poster waits for its call before it posts again, so the loop sleeps in between. Threads take turns as often
    as the interpreter lets them."""
    late: list[tuple[int, int]] = []

    def post(name: int) -> None:
        for number in range(1500):
            called = threading.Event()
            mailbox.post(called.set)
            if not called.wait(LONG_S):
                late.append((name, number))
                return

    with running() as mailbox, switch_interval(1e-6):
        from_threads(post)
    assert not late


def test_the_loop_finds_what_it_is_woken_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class FastLoop(native.WakeUp):
        """The loop has looked before the poster goes on."""

        def signal(self) -> None:
            super().signal()
            time.sleep(0.05)

    monkeypatch.setattr(native, "WakeUp", FastLoop)
    called = threading.Event()
    with running() as mailbox:
        mailbox.post(called.set)
        assert called.wait(LONG_S)


def test_posting_keeps_the_interpreter() -> None:
    called: list[int] = []
    with running() as mailbox:
        mailbox.post(partial(called.append, 0))
        wait_until(lambda: called, LONG_S)
        # The loop's thread gets the interpreter only if this one lets go of it.
        with switch_interval(LONG_S):
            gc.disable()
            for number in range(1, 5000):
                mailbox.post(partial(called.append, number))
            called_meanwhile = called[1:]
            gc.enable()
        assert called_meanwhile == []
        wait_until(lambda: len(called) == 5000, LONG_S)


def test_calls_that_post_do_not_keep_the_loop_from_others() -> None:
    async def scenario() -> None:
        mailbox = LoopMailbox(asyncio.get_running_loop())
        made = 0

        def again() -> None:
            nonlocal made
            made += 1
            if made < 1000:
                mailbox.post(again)

        mailbox.post(again)
        for turn in range(20):
            await asyncio.sleep(0)
            # One in each turn of the loop: what is posted meanwhile is not called in this one, and not forgotten.
            assert turn <= made <= turn + 1
        mailbox.close()

    asyncio.run(scenario())


def test_a_call_that_raises_is_reported_and_the_others_are_made() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        reported: list[object] = []
        loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))
        called: list[int] = []
        errors: list[BaseException] = [ValueError("first"), asyncio.CancelledError("second")]

        def fail(error: BaseException) -> None:
            raise error

        mailbox = LoopMailbox(loop)
        for number, error in enumerate(errors):
            mailbox.post(partial(fail, error))
            mailbox.post(partial(called.append, number))
        await asyncio.sleep(0.01)
        assert (called, reported) == ([0, 1], errors)
        mailbox.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_what_ends_the_loop_leaves_the_other_calls_for_its_next_run(error: type[BaseException]) -> None:
    def end() -> None:
        raise error

    loop = asyncio.new_event_loop()
    called: list[int] = []
    mailbox = LoopMailbox(loop)
    mailbox.post(end)
    mailbox.post(partial(called.append, 1))
    with pytest.raises(error):
        loop.run_forever()
    assert not called
    loop.run_until_complete(asyncio.sleep(0.01))
    assert called == [1]
    mailbox.close()
    loop.close()


def test_closing_makes_what_was_posted_and_drops_what_comes_later() -> None:
    async def scenario() -> None:
        called: list[int] = []
        others = eventfds()
        mailbox = LoopMailbox(asyncio.get_running_loop())
        (descriptor,) = eventfds() - others
        mailbox.post(partial(called.append, 1))
        mailbox.post(partial(called.append, 2))
        mailbox.close()
        assert called == [1, 2]
        mailbox.post(partial(called.append, 3))
        mailbox.close()
        assert not asyncio.get_running_loop().remove_reader(descriptor), "the loop still watches it"
        assert descriptor not in eventfds()
        await asyncio.sleep(0.01)
        assert called == [1, 2]

    asyncio.run(scenario())


def test_a_call_may_close_the_mailbox() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        called: list[int] = []
        reported: list[object] = []
        loop.set_exception_handler(lambda _, context: reported.append(context))
        mailbox = LoopMailbox(loop)
        mailbox.post(mailbox.close)
        mailbox.post(partial(called.append, 1))
        await asyncio.sleep(0.01)
        assert (called, reported) == ([1], [])

    asyncio.run(scenario())


def test_posting_while_it_is_closed_hurts_nobody() -> None:
    """Threads post all the time; whatever they posted is called at most once, and none of them fails."""
    failed: list[BaseException] = []
    called: list[tuple[int, int]] = []
    closed = threading.Event()

    def post(name: int) -> None:
        try:
            for number in range(3000):
                mailbox.post(partial(called.append, (name, number)))
            closed.wait(LONG_S)
            mailbox.post(partial(called.append, (name, -1)))
        except BaseException as error:
            failed.append(error)

    def close() -> None:
        mailbox.close()
        closed.set()

    loop = asyncio.new_event_loop()
    mailbox = LoopMailbox(loop)
    loop.call_later(0.002, close)
    thread = threading.Thread(target=from_threads, args=(post,))
    thread.start()
    while thread.is_alive():
        loop.run_until_complete(asyncio.sleep(0.001))
    loop.close()
    assert not failed
    assert len(set(called)) == len(called)
    for name in range(THREADS):
        numbers = [number for one, number in called if one == name]
        assert numbers == list(range(len(numbers)))


def test_a_loop_that_was_closed_first_takes_everything() -> None:
    called: list[int] = []
    loop = asyncio.new_event_loop()
    others = eventfds()
    mailbox = LoopMailbox(loop)
    (descriptor,) = eventfds() - others
    loop.close()
    mailbox.post(partial(called.append, 1))
    mailbox.close()
    assert not called
    assert descriptor not in eventfds()


def eventfds() -> set[int]:
    """Those of this process: nothing else here makes any."""
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the one that lists them is gone
            if descriptor.readlink() == Path("anon_inode:[eventfd]"):
                found.add(int(descriptor.name))
    return found
