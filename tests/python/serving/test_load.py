"""A server under load over HTTP: whatever else happens, a finished answer is the one of the same request alone.

Eight streams run, 64 requests wait, and clients come, leave in every way, and are cancelled. Bit-equality is checked on
the logits themselves: LogitsWitness stands where the engine expects the program, so that nothing of the product
changes, and digests all f32 logits of every sampled row. Every sequence that the engine opened must have produced
exactly those that its request produced alone, or their beginning if it was broken off. Afterwards nothing is left.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from ninfer import native
from ninfer.config.engine_options import EngineOptions
from ninfer.demo import HYBRID_DIRECTORY
from ninfer.engine.engine import load_model
from ninfer.engine.request import RequestState
from ninfer.engine.service import EngineService
from ninfer.serving.app import create_app
from ninfer.serving.event_router import EventRouter
from ninfer.serving.served_model import ServedModel
from ninfer.serving.serving_options import ServingOptions
from tests.fixtures.logits_witness import LogitsWitness
from tests.fixtures.seed import SEED
from tests.python.serving.live_server import serving, wait_until
from tests.python.serving.load_requests import Asked, broken_off, compared_answer, random_request
from tests.python.serving.raw_client import RawConnection

LANES = 8
QUEUED = 64
REQUESTS = 24
WARM_UP_SECONDS = 6.0
# Of each, on a machine so busy that the seconds do not suffice.
LEAST = {"finished": 60, "left": 20, "cancelled": 3}
LEAST_BROKEN_OFF = 10
# Allocators keep some of what a crowd needed at its peak.
RSS_SLACK_BYTES = 48 << 20
CANCELLED = "the test said so"


@dataclass
class Load:
    """The server, its engine and all that happened to requests so far."""

    port: int
    service: EngineService
    router: EventRouter
    witness: LogitsWitness
    alone: list[tuple[Asked, dict[str, Any]]] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)
    most_running: int = 0
    most_queued: int = 0

    @property
    def enough(self) -> bool:
        return all(self.ends[name] >= least for name, least in LEAST.items())


@contextmanager
def loaded_server(cached: bool) -> Iterator[Load]:
    # The small chunk makes long prompts take several units among the rounds of others; results do not depend on it.
    options = EngineOptions(
        threads=2, max_context=1024, max_concurrency=LANES, prefill_chunk=128, host_cache_mib=64, context_cache=cached
    )
    loaded = load_model(HYBRID_DIRECTORY, options, datetime.now)
    planning = native.PlanningSession(loaded.program)
    witness = LogitsWitness(loaded.program)
    router = EventRouter()
    watched = replace(loaded, program=witness)  # type: ignore[arg-type]  # stands in for the program
    service = EngineService(watched, max_queued=QUEUED, hand_over=router.hand_over, planning=planning)
    service.start()
    serving_options = ServingOptions(served_model_names=("demo",), max_queued=QUEUED)
    app = create_app(service, router, ServedModel.of(loaded), serving_options)
    with serving(app, serving_options, lambda: service.stop(30)) as port:
        yield Load(port, service, router, witness)


@pytest.mark.parametrize("seconds", [30, pytest.param(600, marks=pytest.mark.slow)])
@pytest.mark.parametrize("cached", [False, True], ids=["no cache", "cache"])
def test_answers_under_load_are_those_alone_bit_for_bit_and_nothing_is_left(cached: bool, seconds: int) -> None:
    """With a prompt cache, alone means from the root, and what stays is what the catalog keeps."""
    print(f"NINFER_TEST_SEED={SEED}")
    dice = random.Random(SEED)
    with loaded_server(cached) as load:
        asyncio.run(learn(load, [random_request(dice, number) for number in range(REQUESTS)]))
        load.witness.learning = False
        asyncio.run(crowd(load, dice, WARM_UP_SECONDS))
        before = footprint(load)
        start = time.monotonic()
        asyncio.run(crowd(load, dice, seconds - WARM_UP_SECONDS))
        took = time.monotonic() - start
        after = footprint(load)
    report(load, took, before, after)
    assert load.witness.wrong == []
    # Snapshots catch the lanes at moments: what counts is that many ran side by side while many waited.
    assert load.most_running > LANES // 2 and load.most_queued > QUEUED // 2
    assert after.exact == before.exact
    assert after.rss_bytes <= before.rss_bytes + RSS_SLACK_BYTES
    found = load.witness.compared.values()
    assert sum(one.parts for one in found) >= LEAST_BROKEN_OFF
    assert sum(one.whole for one in found) >= load.ends["finished"], "an answer finished whose logits nobody saw"


async def learn(load: Load, requests: list[Asked]) -> None:
    for asked in requests:
        connection = await RawConnection.open(load.port)
        await connection.ask(asked.path, {**asked.body, "cache_prompt": False})
        answer = await connection.answer()
        assert answer.status == 200, answer
        load.alone.append((asked, compared_answer(asked, answer.body, stream=False)))
        await connection.close()
    assert len(load.witness.alone) == len(requests), "two requests have the same prompt"


async def crowd(load: Load, dice: random.Random, seconds: float) -> None:
    """As many clients as the server takes, and whoever cancels, for some seconds and until enough has happened."""
    deadline = time.monotonic() + seconds
    longest = deadline + 120

    def going_on() -> bool:
        assert time.monotonic() < longest, f"too little happened: {load.ends}"
        return time.monotonic() < deadline or not load.enough

    clients = [random.Random(dice.random()) for _ in range(LANES + QUEUED)]
    async with asyncio.TaskGroup() as tasks:
        for client_dice in clients:
            tasks.create_task(client(load, client_dice, going_on))
        tasks.create_task(canceller(load, random.Random(dice.random()), going_on))
        tasks.create_task(asker(load, going_on))


async def client(load: Load, dice: random.Random, going_on: Any) -> None:
    while going_on():
        connection = await RawConnection.open(load.port)
        try:
            # Some ask again on the same connection.
            while await one_request(load, dice, connection) and dice.random() < 0.5 and going_on():
                pass
        finally:
            await connection.close()


async def one_request(load: Load, dice: random.Random, connection: RawConnection) -> bool:
    """Whether the connection may be used again."""
    asked, alone = load.alone[0 if dice.random() < 0.15 else dice.randrange(REQUESTS)]
    stream = dice.random() < 0.6
    await connection.ask(asked.path, {**asked.body, "stream": stream})
    if dice.random() < 0.35:
        await leave(dice, connection, stream=stream)
        load.ends["left"] += 1
        return False
    answer = await connection.answer()
    if answer.status == 429:
        # Those who left still hold places until the engine has seen it.
        assert int(answer.headers["retry-after"]) >= 1
        load.ends["refused"] += 1
        await asyncio.sleep(dice.random() * 0.2)
        return True
    if answer.status == 503 or (stream and broken_off(asked, answer.body)):
        assert CANCELLED.encode() in answer.body, answer
        load.ends["cancelled"] += 1
        return True
    assert answer.status == 200, answer
    assert compared_answer(asked, answer.body, stream=stream) == alone, asked
    load.ends["finished"] += 1
    return True


async def leave(dice: random.Random, connection: RawConnection, *, stream: bool) -> None:
    """At once, later, or in the middle of a stream; by closing or half-closing."""
    moment = dice.choice(["at once", "later", "in the stream"])
    if moment == "later":
        await asyncio.sleep(dice.random() * 0.5)
    elif moment == "in the stream" and stream:
        with suppress(TimeoutError):
            async with asyncio.timeout(20):
                status, _ = await connection.head()
                pieces = dice.randrange(1, 20)
                while status == 200 and pieces > 0 and await connection.piece():
                    pieces -= 1
    if dice.random() < 0.5:
        with suppress(OSError):
            await connection.half_close()


async def canceller(load: Load, dice: random.Random, going_on: Any) -> None:
    """Cancels a random live request now and then, and looks how many there are."""
    while going_on():
        await asyncio.sleep(0.05)
        snapshot = load.service.snapshot()
        load.most_running = max(load.most_running, snapshot.running)
        load.most_queued = max(load.most_queued, snapshot.queued)
        # Mostly of those that run: of the others there are many more, and they leave by themselves.
        running = [request for request in snapshot.requests if request.state is not RequestState.QUEUED]
        chosen = running if running and dice.random() < 0.7 else snapshot.requests
        if chosen and dice.random() < 0.3:
            load.service.cancel(dice.choice(chosen).id, CANCELLED)


async def asker(load: Load, going_on: Any) -> None:
    """Other endpoints answer all the while."""
    while going_on():
        connection = await RawConnection.open(load.port)
        await connection.ask("/tokenize", {"content": "one two three"})
        assert (await connection.answer()).status == 200
        await connection.close()
        await asyncio.sleep(0.1)


@dataclass(frozen=True)
class Footprint:
    """What an idle server holds. exact: must come back as it was."""

    rss_bytes: int
    exact: dict[str, int]


def footprint(load: Load) -> Footprint:
    """Waits for idleness: a client that has left is noticed within a moment, not at once."""
    wait_until(lambda: not load.service.snapshot().requests and load.router.open_entries == 0, 60)
    lowest = held(load)
    for _ in range(50):
        time.sleep(0.02)
        now = held(load)
        lowest = {name: min(value, now[name]) for name, value in lowest.items()}
    gc.collect()
    return Footprint(resident_bytes(), lowest)


def held(load: Load) -> dict[str, int]:
    snapshot = load.service.snapshot()
    statistics = load.witness.program.statistics()
    return {
        "live requests": len(snapshot.requests),
        "lanes": statistics.lanes_open,
        "reserved pages": statistics.used.device_pages_reserved,
        "active images": statistics.used.image_slots_active,
        "open copies": statistics.copies_open + statistics.copies_draining + statistics.condemned,
        "routed requests": load.router.open_entries,
        "tasks": len(asyncio.all_tasks(load.router.loop)),
        "threads": threading.active_count(),
        "files and sockets": len(list(Path("/proc/self/fd").iterdir())),
    }


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def report(load: Load, took: float, before: Footprint, after: Footprint) -> None:
    found = load.witness.compared.values()
    rows = sum(one.rows for one in found)
    print(f"{took:.0f} s: {dict(load.ends)}; {load.most_running} ran, {load.most_queued} queued at most")
    whole, parts = sum(one.whole for one in found), sum(one.parts for one in found)
    print(f"logits of {rows} rows compared, of {whole} whole and {parts} broken-off sequences")
    print(f"resident MiB {before.rss_bytes >> 20} before, {after.rss_bytes >> 20} after; held {after.exact}")
