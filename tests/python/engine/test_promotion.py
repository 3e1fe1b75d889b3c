"""What is kept privately where a prompt starts becomes a shared prefix without a token computed (D-23)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ninfer.engine.copies import CopyBudget
from ninfer.engine.removals import MadeRoom
from ninfer.engine.request import CacheHints
from ninfer.resources.removal_reason import RemovalReason
from tests.fixtures.seed import SEED
from tests.fixtures.stepped_engine import Answer, ComparedEngine
from tests.fixtures.token_chat import ChatTokens, Message, render
from tests.python.engine.cached_models import MakePair

FAMILIES = ("hybrid", "llama")
SLOW_COPIES = CopyBudget(decoding_bytes=4_000, alone_bytes=4_000)


def words(test: str, count: int) -> list[int]:
    return [int(one) for one in np.random.default_rng([SEED, *test.encode()]).integers(10, 265, count)]


def marked(prompt: ChatTokens, at: int) -> ChatTokens:
    return ChatTokens(prompt.ids, replace(prompt.boundaries, markers=(at,)))


def ask(engine: ComparedEngine, prompt: ChatTokens, session: str) -> Answer:
    return engine.answer(prompt.ids, 4, prompt.boundaries, cache=CacheHints(session_id=session))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("budget", [None, SLOW_COPIES])
@pytest.mark.parametrize("words_before", [100, 61 + 64])  # inside a page, and where a page ends
def test_a_marker_where_a_conversation_is_kept(
    make_pair: MakePair, family: str, budget: CopyBudget | None, words_before: int
) -> None:
    print(f"NINFER_TEST_SEED={SEED}")
    pair = make_pair(family)
    engine = ComparedEngine(pair.cached, pair.cold, budget)
    said: list[Message] = [("user", words("first", words_before))]
    first = render(said)
    ask(engine, first, "one")
    # Without recurrent layers the opener of the answer is reused too.
    kept = len(first.ids) if family == "llama" else first.boundaries.turn_closure
    assert kept is not None
    longer = marked(render([*said, ("assistant", words("other", 30)), ("user", words("then", 40))]), kept)
    assert ask(engine, longer, "two").finished.timings.cache_n == kept
    catalog = engine.warm.parts.catalog._catalog
    (shared,) = catalog.shared
    assert (shared.entry.frontier, shared.evidence.is_declared) == (kept, True)
    # Without the conversations the prefix is all that a third one goes on from.
    for slot in engine.warm.loop.view().slots:
        owner = catalog.cells[slot.cell].owner
        assert engine.warm.program.release_owner(owner) is None
        engine.warm.parts.catalog.note_released(owner, RemovalReason.ERASED)
    third = render([*said, ("assistant", words("third", 30)), ("user", words("then", 40))])
    assert ask(engine, third, "three").finished.timings.cache_n == kept
    assert len(catalog.shared) == 1, "it is there already"
    engine.warm.check()


def test_the_recycled_prefix_stays_while_the_capture_waits(
    make_pair: MakePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C8's retry: at every boundary, and the old prefix is there until the new one can be made."""
    print(f"NINFER_TEST_SEED={SEED}")
    pair = make_pair("hybrid", max_shared_prefixes=1)
    engine = ComparedEngine(pair.cached, pair.cold)
    for number in range(3):
        ask(engine, render([("system", words(f"system {number}", 80)), ("user", words("user", 40))]), "one")
    catalog, removals = engine.warm.parts.catalog._catalog, engine.warm.loop._captures._removals
    (old,) = catalog.shared
    assert catalog.removed[RemovalReason.SHARED_FULL] == 2
    make_room, waits = removals.make_room, [MadeRoom.LATER, MadeRoom.LATER]

    def waits_first(*asked: Any) -> MadeRoom:
        return waits.pop() if waits else make_room(*asked)

    monkeypatch.setattr(removals, "make_room", waits_first)
    prompt = render([("system", words("new", 80)), ("user", words("user", 40))])
    answer = engine.ask(prompt.ids, 4, prompt.boundaries)
    while waits:
        engine.warm.step()
        assert old in catalog.shared
    engine.warm.run(answer)
    engine.warm.run()
    view = engine.warm.loop.view()
    assert old not in catalog.shared
    assert (len(catalog.shared), view.captures_skipped) == (1, ())
    assert view.statistics is not None and view.statistics.captures_without_room == 0
    engine.warm.check()
