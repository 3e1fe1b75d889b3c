"""Where pages are short, the least valuable captures fall away, and no more than these."""

from __future__ import annotations

import numpy as np
import pytest

from ninfer.engine.request import CacheHints, Request
from ninfer.resources.checkpoint_kind import CheckpointKind
from ninfer.resources.reuse_report import ReuseReason
from tests.fixtures.seed import SEED
from tests.fixtures.stepped_engine import Answer, ComparedEngine
from tests.fixtures.token_chat import ChatTokens, Message, render
from tests.python.engine.cached_models import MakePair

PAGES = 16
TOKENS = 64 * PAGES
ANCHOR, CLOSURE = CheckpointKind.LONG_ANCHOR, CheckpointKind.TURN_CLOSURE
SHARED = CheckpointKind.SHARED_STABLE_PREFIX


def words(test: str, count: int) -> list[int]:
    return [int(one) for one in np.random.default_rng([SEED, *test.encode()]).integers(10, 265, count)]


def chat(messages: int) -> ChatTokens:
    """A system prompt, then messages, of 46 tokens each: none begins where a page does."""
    roles = ["system", *(("user", "assistant")[number % 2] for number in range(messages))]
    said: list[Message] = [(role, words(f"message {number}", 43)) for number, role in enumerate(roles)]
    return render(said)


@pytest.fixture
def engine(make_pair: MakePair) -> ComparedEngine:
    print(f"NINFER_TEST_SEED={SEED}")
    pair = make_pair("hybrid", kv_capacity=TOKENS, max_context=TOKENS, host_cache_mib=0)
    return ComparedEngine(pair.cached, pair.cold)


def started(engine: ComparedEngine, prompt: ChatTokens, count: int) -> tuple[Answer, Request]:
    answer = engine.warm.ask(prompt.ids, count, prompt.boundaries)
    while not engine.warm.parts.scheduler.staged:
        engine.warm.step()
    return answer, engine.warm.live(answer)


@pytest.mark.parametrize(
    ("spare", "kept"),
    [
        (0, []),
        (1, [CLOSURE]),
        (2, [SHARED, CLOSURE]),
        (4, [SHARED, ANCHOR, ANCHOR, CLOSURE]),
    ],
)
def test_the_most_valuable_captures_stay(engine: ComparedEngine, spare: int, kept: list[CheckpointKind]) -> None:
    """What the request is promised leaves so many pages."""
    prompt = chat(9)
    answer, request = started(engine, prompt, TOKENS - 64 * spare - len(prompt.ids))
    planned = [capture.kind for capture in request.captures]
    taken = engine.warm.loop._captures.taken
    while not answer.tokens:
        engine.warm.step()
    assert len(planned) + taken == len(kept) or engine.warm.loop._captures.taken == len(kept)
    assert engine.warm.loop.view().captures_skipped == ()
    (slot,) = engine.warm.loop.view().slots
    assert [*slot.kinds] == [kind for kind in kept if kind is not SHARED]
    engine.warm.service.cancel(answer.request_id, "enough")
    engine.warm.run()
    engine.warm.check()


def test_under_pressure_those_are_planned_that_still_fit(engine: ComparedEngine) -> None:
    """Everything idle goes for the request itself, and three pages are left."""
    engine.answer(words("idle", 500), cache=CacheHints(session_id="idle"))
    prompt = chat(9)
    answer, _ = started(engine, prompt, TOKENS - 64 * 3 - len(prompt.ids))
    while not answer.tokens:
        engine.warm.step()
    view = engine.warm.loop.view()
    assert view.statistics is not None and view.statistics.removed["pressure"] > 0
    assert (view.captures_taken - 1, view.captures_skipped) == (3, ()), "one was of the idle one"
    engine.warm.service.cancel(answer.request_id, "enough")
    engine.warm.run()
    engine.warm.check()


def test_captures_cost_no_reuse(engine: ComparedEngine) -> None:
    """The whole conversation fits beside the request without captures; with them only its beginning did."""
    first = chat(3)
    engine.answer(first.ids, 4, first.boundaries, cache=CacheHints(session_id="one"))
    longer = chat(9)
    answer, request = started(engine, longer, TOKENS - 64 * 3 - len(longer.ids))
    assert request.base == first.boundaries.turn_closure
    while not answer.tokens:
        engine.warm.step()
    engine.warm.service.cancel(answer.request_id, "enough")
    engine.warm.run()
    engine.warm.check()


@pytest.mark.parametrize("family", ["hybrid", "llama"])
@pytest.mark.parametrize(("pages", "fits"), [(PAGES, False), (PAGES - 1, True)])
def test_a_source_that_does_not_fit_beside_its_request_is_told(
    make_pair: MakePair, family: str, pages: int, fits: bool
) -> None:
    """Another session's conversation of 7 pages stays, 6 of which the request shares: the others fit only just."""
    pair = make_pair(family, kv_capacity=TOKENS, max_context=TOKENS, host_cache_mib=0, max_shared_prefixes=0)
    engine = ComparedEngine(pair.cached, pair.cold)
    mine = words("mine", 400)
    mine += engine.answer(mine, cache=CacheHints(session_id="mine")).tokens
    prompt = [*mine, *words("theirs", 20)]
    answer = engine.warm.ask(prompt, 64 * pages - len(prompt), cache=CacheHints(session_id="theirs"))
    while not answer.tokens:
        engine.warm.step()
    reuse = engine.warm.live(answer).reuse
    assert reuse.shortfall.reason is (None if fits else ReuseReason.PRESSURE_REFUSED)
    assert (reuse.frontier, reuse.shortfall.shared_tokens) == ((403, None) if fits else (0, 403))
    engine.warm.service.cancel(answer.request_id, "enough")
    engine.warm.run()
    engine.warm.check()
