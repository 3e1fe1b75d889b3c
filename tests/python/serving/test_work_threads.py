"""Work that nobody waits for is forgotten, and with it what it holds."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from ninfer.engine.events import Cancelled
from ninfer.errors import EngineFailedError, RequestError
from ninfer.serving.body_budget import FREE_BYTES, BodyBudget
from ninfer.serving.event_router import EventRouter
from ninfer.serving.running_generation import Generations
from ninfer.serving.text_workers import TextWorkers
from ninfer.serving.work_threads import WorkThreads
from tests.python.serving.scripted_engine import ScriptedEngine

LARGE = FREE_BYTES + 1000


class Body:
    """Stands for the bytes of a body, which allow no weak reference."""


@pytest.fixture(autouse=True)
def without_collector() -> Iterator[None]:
    """Memory has to come back without the collector, whose full rounds are rare."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def used(body: Body, then: Callable[[], int]) -> int:
    assert isinstance(body, Body)
    return then()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)


def blocker(begun: threading.Event, go_on: threading.Event) -> int:
    begun.set()
    assert go_on.wait(30)
    return 1


@pytest.mark.parametrize("kind", ["text", "generation"])
def test_a_body_goes_with_its_client_and_counts_until_it_is_gone(kind: str) -> None:
    async def scenario() -> None:
        budget = BodyBudget(1 << 20)
        router = EventRouter()
        router.bind(asyncio.get_running_loop())
        generations = Generations(ScriptedEngine(router.hand_over, router=router), router, 8)
        text = TextWorkers()

        def start(work: Callable[[], int]) -> asyncio.Task[object]:
            async def run() -> object:
                with budget.share() as share:
                    share.grow_to(LARGE)
                    nonlocal work
                    if kind == "text":
                        waiting = text.run(work, share)
                    else:
                        waiting = generations.start(work, share, 0.0)  # type: ignore[arg-type]  # it never ends
                    del work
                    return await waiting

            return asyncio.ensure_future(run())

        begun, go_on = threading.Event(), threading.Event()
        holders = []
        for _ in range(2):
            body = Body()
            holders.append((weakref.ref(body), start(partial(used, body, partial(blocker, begun, go_on)))))
            del body
        waiting_body = Body()
        waiting = weakref.ref(waiting_body)
        waiter = start(partial(used, waiting_body, lambda: pytest.fail("nobody waits for it")))
        del waiting_body
        await until(begun.is_set)
        assert budget.taken_bytes == 3 * 1000

        waiter.cancel()
        await until(waiter.done)
        assert waiting() is None, "it waited behind others, so nothing may hold it now"
        assert budget.taken_bytes == 2 * 1000

        for _, task in holders:
            task.cancel()
            await until(task.done)
        running = sum(held() is not None for held, _ in holders)
        assert running == (1 if kind == "text" else 2)
        assert budget.taken_bytes == running * 1000, "a thread still works on it"
        go_on.set()
        await until(lambda: budget.taken_bytes == 0)
        assert [held() for held, _ in holders] == [None, None]
        text.close()
        generations.close()

    asyncio.run(scenario())


def test_results_that_nobody_waits_for_are_handed_back() -> None:
    async def scenario() -> None:
        threads = WorkThreads(1, "test")
        begun, go_on = threading.Event(), threading.Event()
        gone: list[int] = []
        unwanted: list[int] = []
        job = threads.submit(partial(blocker, begun, go_on), lambda: gone.append(1), unwanted.append)
        await until(begun.is_set)
        threads.drop(job)
        assert not gone
        go_on.set()
        await until(lambda: unwanted == [1])
        assert gone == [1]
        # It may also come in the moment in which its waiter gives up.
        late = threads.submit(lambda: 2, lambda: gone.append(2), unwanted.append)
        await until(late.result.done)
        threads.drop(late)
        assert (gone, unwanted) == ([1, 2], [1, 2])
        threads.close()

    asyncio.run(scenario())


def test_a_refusal_does_not_keep_the_body() -> None:
    def refuse(body: Body) -> int:
        raise RequestError("prompt", f"no {type(body).__name__}")

    async def scenario() -> None:
        threads = WorkThreads(1, "test")
        body = Body()
        kept = weakref.ref(body)
        job = threads.submit(partial(refuse, body), lambda: None)
        del body
        with pytest.raises(RequestError, match="no Body") as caught:
            await job.result
        assert kept() is None, caught
        threads.close()

    asyncio.run(scenario())


def test_closing_the_router_ends_preparations() -> None:
    async def scenario() -> None:
        router = EventRouter()
        router.bind(asyncio.get_running_loop())
        engine = ScriptedEngine(router.hand_over, router=router)
        generations = Generations(engine, router, 8)
        begun, go_on = threading.Event(), threading.Event()
        with BodyBudget(1000).share() as share:
            work = partial(blocker, begun, go_on)
            task = asyncio.ensure_future(generations.start(work, share, 0.0))  # type: ignore[arg-type]  # it never ends
            await until(begun.is_set)
            router.close("shutdown")
            with pytest.raises(EngineFailedError):
                await task
        go_on.set()
        generations.close()

    asyncio.run(scenario())


def test_work_that_ends_after_its_loop_hurts_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    begun, go_on = threading.Event(), threading.Event()

    async def scenario() -> WorkThreads:
        threads = WorkThreads(1, "late")
        threads.submit(partial(blocker, begun, go_on), lambda: None)
        await until(begun.is_set)
        return threads

    threads = asyncio.run(scenario())
    go_on.set()
    threads.close()
    for thread in threading.enumerate():
        if thread.name.startswith("late"):
            thread.join(30)
    assert "Traceback" not in capsys.readouterr().err


def test_the_router_of_a_server_that_is_gone_takes_everything() -> None:
    router = EventRouter()

    async def bound() -> None:
        router.bind(asyncio.get_running_loop())

    asyncio.run(bound())
    router.hand_over([(1, [Cancelled("late")])])
    router.close("shutdown")
    assert router.open_entries == 0
