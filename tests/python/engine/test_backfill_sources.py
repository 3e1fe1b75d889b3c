"""Who overtakes the head starts from nothing whose stay would make the head wait for it."""

from __future__ import annotations

import numpy as np
import pytest

from ninfer.engine.request import CacheHints
from ninfer.resources.reuse_report import ReuseReason
from tests.fixtures.seed import SEED
from tests.fixtures.stepped_engine import Answer, ComparedEngine
from tests.fixtures.token_chat import Message, render
from tests.python.engine.cached_models import MakePair
from tests.python.engine.order_watch import OrderWatch

FAMILIES = ("hybrid", "llama")
TOKENS = 1024  # 16 pages
DONOR_ANSWER = 30
BORROWER_ANSWER = 90  # it outlives the donor


def words(test: str, count: int) -> list[int]:
    return [int(one) for one in np.random.default_rng([SEED, *test.encode()]).integers(10, 265, count)]


class Crowd:
    """A conversation is kept, with a checkpoint after its first message; a donor runs, and a head waits for it."""

    def __init__(self, make_pair: MakePair, family: str, *, kept: int, donor: int, head: int) -> None:
        """All in tokens."""
        print(f"NINFER_TEST_SEED={SEED}")
        pair = make_pair(family, kv_capacity=TOKENS, max_context=TOKENS, max_shared_prefixes=0)
        self.engine = ComparedEngine(pair.cached, pair.cold)
        self.watch = OrderWatch(self.engine)
        self.first: list[Message] = [("user", words("one", 70)), ("assistant", words("two", 10))]
        chat = render([*self.first, ("user", words("three", kept - 80))])
        self.engine.answer(chat.ids, 4, chat.boundaries, cache=CacheHints(session_id="x"))
        self.donor = self.engine.ask(words("donor", donor - DONOR_ANSWER), DONOR_ANSWER)
        while not self.donor.tokens:
            self.step()
        self.head = self.engine.ask(words("head", head - 20), 20)
        branch = render([*self.first[:1], ("assistant", words("four", 10))])
        self.prompt = branch.ids
        self.ask = lambda session: self.engine.ask(
            branch.ids, BORROWER_ANSWER, branch.boundaries, cache=CacheHints(session_id=session)
        )

    def step(self) -> None:
        self.engine.warm.step()
        self.watch.look()

    def overtake(self, session: str) -> Answer:
        """The borrower's answer, when the donor has ended, and the head had time to start."""
        borrower = self.ask(session)
        while not self.donor.ended:
            self.step()
        assert borrower.tokens and not borrower.ended and not self.head.tokens
        for _ in range(20):
            self.step()
        assert self.head.tokens and not borrower.ended
        self.engine.warm.run()
        self.engine.assert_same(borrower, self.prompt, BORROWER_ANSWER)
        self.engine.warm.check()
        return borrower


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("session", ["x", "y"])
def test_a_head_waits_for_no_source_of_who_overtook_it(make_pair: MakePair, family: str, session: str) -> None:
    """Head (12 pages) and borrower (3) fit beside each other, but not beside the kept conversation as well (7)."""
    borrower = Crowd(make_pair, family, kept=400, donor=320, head=720).overtake(session)
    reuse = borrower.finished.reuse
    if session == "y":
        assert (reuse.frontier, reuse.shortfall.reason) == (0, ReuseReason.PRESSURE_REFUSED), "it was there"


@pytest.mark.parametrize("family", FAMILIES)
def test_what_leaves_room_for_the_head_is_reused(make_pair: MakePair, family: str) -> None:
    """Donor and head (9 pages each) do not fit together; the head, the kept conversation (3) and the borrower do."""
    borrower = Crowd(make_pair, family, kept=160, donor=570, head=570).overtake("y")
    assert borrower.finished.timings.cache_n >= 64
