"""Many boundaries of one engine with seeded clients, tiny pools and slow copies: the real program, nothing by chance.

Every answer is the cold one, in all logits. Nobody is overtaken but by whom the proof allows, and a head starts as soon
as those that ran before it became the head are gone. Afterwards nothing is left but what the catalog knows, and all of
that goes when it is needed.
"""

from __future__ import annotations

import random

import pytest

from ninfer.engine.copies import CopyBudget
from ninfer.engine.request import CacheHints
from tests.fixtures.seed import SEED
from tests.fixtures.stepped_engine import ComparedEngine
from tests.fixtures.token_chat import Message
from tests.python.engine.cached_models import MakePair
from tests.python.engine.order_watch import OrderWatch
from tests.python.engine.simulated_clients import SYSTEMS, SimulatedClient

TOKENS = 1536
SIZES = {
    "kv_capacity": TOKENS,
    "max_context": TOKENS,
    "max_concurrency": 4,
    "prefill_chunk": 96,
    "device_state_slots": 3,
    "host_cache_mib": 1,
    "max_private_continuations": 12,
    "max_shared_prefixes": 4,
}
CLIENTS = 7
SLOW_COPIES = CopyBudget(decoding_bytes=20_000, alone_bytes=50_000)


@pytest.mark.parametrize("family", ["hybrid", "llama"])
@pytest.mark.parametrize("boundaries", [3000, pytest.param(60_000, marks=pytest.mark.slow)])
def test_a_crowd_of_clients(make_pair: MakePair, family: str, boundaries: int) -> None:
    print(f"NINFER_TEST_SEED={SEED}")
    dice = random.Random(f"{SEED} {family}")
    pair = make_pair(family, **SIZES)
    engine = ComparedEngine(pair.cached, pair.cold, SLOW_COPIES)
    systems: list[Message] = [("system", [dice.randrange(10, 265) for _ in range(70)]) for _ in range(SYSTEMS)]
    clients = [SimulatedClient(engine, random.Random(dice.random()), systems, f"c{one}") for one in range(CLIENTS)]
    watch = OrderWatch(engine)
    for number in range(boundaries):
        for client in clients:
            client.act()
        engine.warm.step()
        engine.warm.clock.now += dice.random()
        watch.look()
        if number % 5 == 0:
            # Whoever asks what is kept may ask in the middle of a transaction.
            engine.warm.loop.view()
        if number % 25 == 0:
            engine.warm.program.check_invariants()
    engine.warm.run()
    for client in clients:
        client.act()
    assert engine.witness.wrong == []
    report(engine, clients, watch)
    assert_nothing_is_left(engine)


def report(engine: ComparedEngine, clients: list[SimulatedClient], watch: OrderWatch) -> None:
    ends: dict[str, int] = {}
    for client in clients:
        for name, count in client.ends.items():
            ends[name] = ends.get(name, 0) + count
    view = engine.warm.loop.view()
    print(f"{ends}, overtaken in {watch.overtaken} looks, {view}")
    assert ends["Finished"] > 20 and view.captures_taken > 0 and view.backfilled > 0


def assert_nothing_is_left(engine: ComparedEngine) -> None:
    engine.warm.check()
    idle = engine.warm.program.statistics()
    assert (idle.lanes_open, idle.used.device_pages_reserved, idle.used.image_slots_active) == (0, 0, 0)
    assert (idle.copies_open, idle.copies_draining, idle.condemned) == (0, 0, 0)
    # Somebody who needs every page takes every page.
    everything = engine.warm.ask([11] * 64, TOKENS - 64, cache=CacheHints(use=False))
    while len(everything.tokens) < 2:
        engine.warm.step()
    engine.warm.service.cancel(everything.request_id, "enough")
    engine.warm.run()
    engine.warm.check()
    empty = engine.warm.program.statistics()
    assert (empty.owners, empty.checkpoints, empty.pages_free) == (0, 0, empty.pages_total)
    assert (empty.used.host_blocks, empty.used.image_slots_checkpoint) == (0, 0)
