"""Events reach their requests in order, whichever threads say them, and none is kept for nobody."""

from __future__ import annotations

import asyncio
import threading

from starlette.testclient import TestClient

from ninfer.engine.events import Cancelled, EngineEvent, TokenEvent
from ninfer.serving.app import create_app
from ninfer.serving.event_router import EventRouter
from ninfer.serving.served_model import ServedModel
from ninfer.serving.serving_options import ServingOptions
from tests.python.serving.scripted_engine import ScriptedEngine

REQUESTS = 4
TOKENS = 1000
LONG_S = 60.0


async def received(router: EventRouter, request_id: int) -> list[EngineEvent]:
    """All events up to the last one, read as they come."""
    entry = router.claim(request_id)
    events: list[EngineEvent] = []
    while not entry.ended:
        taken = await entry.take(LONG_S)
        assert taken, "an event came and nobody was woken"
        events += taken
    events += await entry.take(0)
    router.release(request_id)
    return events


def test_events_of_several_threads_arrive_in_order_in_small_batches() -> None:
    def say(router: EventRouter, request_id: int) -> None:
        for number in range(TOKENS):
            router.hand_over([(request_id, [TokenEvent(number, "", None)])])
        router.hand_over([(request_id, [Cancelled("said all")])])

    async def scenario() -> None:
        router = EventRouter()
        router.bind(asyncio.get_running_loop())
        threads = [threading.Thread(target=say, args=(router, name)) for name in range(REQUESTS)]
        for thread in threads:
            thread.start()
        expected = [*(TokenEvent(number, "", None) for number in range(TOKENS)), Cancelled("said all")]
        for events in await asyncio.gather(*(received(router, name) for name in range(REQUESTS))):
            assert events == expected
        assert router.open_entries == 0
        router.unbind()

    asyncio.run(scenario())


def test_what_was_said_before_closing_comes_before_its_end() -> None:
    async def scenario() -> None:
        router = EventRouter()
        router.bind(asyncio.get_running_loop())

        def say() -> None:
            router.hand_over([(1, [TokenEvent(5, "five", None)]), (2, [Cancelled("left")])])
            router.close("shutdown")

        await asyncio.to_thread(say)
        assert await received(router, 1) == [TokenEvent(5, "five", None), Cancelled("shutdown")]
        assert await received(router, 2) == [Cancelled("left")]
        assert router.closed.is_set()
        router.unbind()

    asyncio.run(scenario())


def test_unbinding_tells_what_was_said_and_ends_the_rest() -> None:
    async def scenario() -> None:
        router = EventRouter()
        router.bind(asyncio.get_running_loop())
        reader = asyncio.ensure_future(received(router, 1))
        router.release(2)
        await asyncio.sleep(0)
        router.hand_over([(1, [TokenEvent(5, "five", None)])])
        router.unbind()
        router.hand_over([(1, [TokenEvent(6, "six", None)]), (3, [TokenEvent(6, "six", None)])])
        assert await reader == [TokenEvent(5, "five", None), Cancelled("shutdown")]
        assert router.open_entries == 0

    asyncio.run(scenario())


def test_an_engine_that_outlives_its_server_talks_to_nobody(
    engine: ScriptedEngine, model: ServedModel, options: ServingOptions
) -> None:
    with TestClient(create_app(engine, engine.router, model, options)):
        pass
    engine.hand_over([(1, [TokenEvent(5, "five", None)])])
    assert engine.router.open_entries == 0
