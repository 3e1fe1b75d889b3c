"""Memory full of states that nobody asks for any more: reuse goes on, and what gives way is counted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ninfer import native
from ninfer.engine.copies import CopyBudget
from ninfer.engine.removals import MadeRoom
from ninfer.engine.request import CacheHints
from ninfer.resources.checkpoint_kind import CheckpointKind
from ninfer.resources.removal_reason import RemovalReason
from ninfer.resources.reuse_report import ReuseReason
from tests.fixtures.seed import SEED
from tests.fixtures.stepped_engine import Answer, ComparedEngine
from tests.fixtures.token_chat import Message, render
from tests.python.engine.cached_models import MakePair

SLOTS = 4


class Words:
    """Random content, different for each test."""

    def __init__(self, test: str) -> None:
        print(f"NINFER_TEST_SEED={SEED}")
        self._dice = np.random.default_rng([SEED, *test.encode()])

    def __call__(self, count: int) -> list[int]:
        return [int(one) for one in self._dice.integers(10, 265, count)]


@pytest.fixture
def words(request: pytest.FixtureRequest) -> Words:
    return Words(request.node.name)


@pytest.fixture
def engine(make_pair: MakePair) -> ComparedEngine:
    pair = make_pair("hybrid", device_state_slots=SLOTS, host_cache_mib=0)
    return ComparedEngine(pair.cached, pair.cold)


def chat(engine: ComparedEngine, messages: Sequence[Message], session: str | None = None) -> Answer:
    rendered = render(messages)
    return engine.answer(rendered.ids, 4, rendered.boundaries, cache=CacheHints(session_id=session))


def test_many_system_prompts_do_not_end_reuse(engine: ComparedEngine, words: Words) -> None:
    """Each leaves a shared prefix; more of them than there are states."""
    for _ in range(2 * SLOTS):
        messages: list[Message] = [("system", words(80)), ("user", words(40))]
        for turn in range(3):
            answer = chat(engine, messages)
            if turn:
                assert answer.finished.timings.prompt_n < 50, "all but the answer's end and the new message"
                assert answer.finished.reuse.shortfall.reason is None
            messages += [("assistant", answer.tokens), ("user", words(40))]
    view = engine.warm.loop.view()
    assert view.statistics is not None and view.statistics.removed["pressure"] > 0
    assert view.endpoints_without_room == 0
    engine.warm.check()


def test_a_new_shared_prefix_takes_free_room_only(engine: ComparedEngine, words: Words) -> None:
    """C7: two conversations with an anchor and an endpoint each fill the memory; both stay until the request ends."""
    for session in ("one", "two"):
        engine.answer(words(100), cache=CacheHints(session_id=session))
    rendered = render([("system", words(80)), ("user", words(40))])
    answer = engine.ask(rendered.ids, 4, rendered.boundaries)
    while not answer.tokens:
        engine.warm.step()
    view = engine.warm.loop.view()
    assert view.captures_skipped != ()
    assert view.statistics is not None and "pressure" not in view.statistics.removed
    assert view.statistics.shared_used == 0
    engine.warm.run()
    sessions = {slot.session for slot in engine.warm.loop.view().slots}
    assert sessions == {"two", None}, "the endpoint took the place of the older one"
    engine.warm.check()


def test_who_may_not_go_now_is_passed_over(
    engine: ComparedEngine, words: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    for session in ("one", "two"):
        engine.answer(words(100), cache=CacheHints(session_id=session))
    program = engine.warm.parts.program
    release, refused = program.release_owner, []

    def refuses_the_first(owner: int) -> native.Refusal | None:
        if refused in ([], [owner]):
            refused[:] = [owner]
            return release(0)
        return release(owner)

    monkeypatch.setattr(program, "release_owner", refuses_the_first)
    engine.answer(words(100), cache=CacheHints(session_id="three"))
    assert {slot.session for slot in engine.warm.loop.view().slots} == {"one", "three"}
    assert engine.warm.loop.view().endpoints_without_room == 0
    engine.warm.check()


def test_what_found_no_room_is_not_called_unknown(make_pair: MakePair, words: Words) -> None:
    pair = make_pair("hybrid", device_state_slots=0, host_cache_mib=0)
    engine = ComparedEngine(pair.cached, pair.cold)
    prompt = words(100)
    assert engine.answer(prompt).finished.reuse.shortfall.reason is ReuseReason.NO_MATCH
    assert engine.answer(prompt).finished.reuse.shortfall.reason is ReuseReason.EVICTED
    assert engine.answer([*prompt, *words(50)]).finished.reuse.shortfall.reason is ReuseReason.EVICTED
    engine.warm.check()


@pytest.mark.parametrize("slots", [1, 2, 3, 6])
def test_a_long_conversation_gives_its_own_anchors_up_before_its_end(
    make_pair: MakePair, words: Words, slots: int
) -> None:
    """It has more places worth keeping than there are states, and nobody else is there who could give way."""
    pair = make_pair("hybrid", device_state_slots=slots, host_cache_mib=0, max_shared_prefixes=0)
    engine = ComparedEngine(pair.cached, pair.cold)
    messages: list[Message] = [("system", words(40))]
    for _ in range(5):
        messages += [("user", words(30)), ("assistant", words(30))]
    for turn in range(3):
        messages.append(("user", words(30)))
        answer = chat(engine, messages, "long")
        messages.append(("assistant", answer.tokens))
        assert turn == 0 or answer.finished.timings.prompt_n < 50, "the turn before is still there"
        (slot,) = engine.warm.loop.view().slots
        assert slot.kinds[-1] is CheckpointKind.SESSION_ENDPOINT
        assert slots == 1 or CheckpointKind.TURN_CLOSURE in slot.kinds, "worth more than an anchor"
    assert engine.warm.loop.view().endpoints_without_room == 0
    engine.warm.check()


def test_nobody_goes_if_that_would_not_help(make_pair: MakePair, words: Words) -> None:
    pair = make_pair("hybrid", device_state_slots=SLOTS, host_cache_mib=0)
    engine = ComparedEngine(pair.cached, pair.cold)
    engine.answer(words(100), cache=CacheHints(session_id="one"))
    program, parts = engine.warm.parts.program, engine.warm.parts
    request = engine.ask(words(200), 20)
    while not request.tokens:
        engine.warm.step()
    sequence = engine.warm.live(request).open_sequence
    kept = parts.catalog.memory_victims(engine.warm.live(request).claim)
    assert kept
    removals = engine.warm.loop._captures._removals
    wanted = [native.Publication.capture(sequence, "long_anchor", "host")]
    revision = program.resource_revision
    assert removals.make_room(wanted, kept) is MadeRoom.NO, "there is no Host at all"
    assert program.resource_revision == revision
    engine.warm.run()
    engine.warm.check()


def shared_chats(engine: ComparedEngine, words: Words, count: int) -> list[list[Message]]:
    """Conversations with a shared prefix each; of the conversations themselves nothing is kept."""
    made: list[list[Message]] = [[("system", words(80)), ("user", words(40))] for _ in range(count)]
    for messages in made:
        chat(engine, messages)
        for slot in engine.warm.loop.view().slots:
            cell = engine.warm.parts.catalog._catalog.cells[slot.cell]
            assert engine.warm.loop._captures._removals.release(cell.owner, RemovalReason.ERASED) is None
    return made


def test_a_turn_closure_takes_the_memory_of_an_old_shared_prefix(engine: ComparedEngine, words: Words) -> None:
    shared_chats(engine, words, SLOTS - 2)
    engine.answer(words(100), cache=CacheHints(session_id="stays"))
    assert engine.warm.program.statistics().used.image_slots_checkpoint == SLOTS
    rendered = render([("user", words(40))])
    answer = engine.ask(rendered.ids, 4, rendered.boundaries)
    while not answer.tokens:
        engine.warm.step()
    view = engine.warm.loop.view()
    assert view.captures_skipped == ()
    assert view.statistics is not None and view.statistics.removed["pressure"] == 1
    assert view.statistics.shared_used == SLOTS - 3
    engine.warm.run()
    engine.warm.check()


def test_a_full_catalog_gives_place_and_memory_of_its_oldest_prefix(make_pair: MakePair, words: Words) -> None:
    """C8: all states are taken; the old prefix's is enough for the new one."""
    pair = make_pair("hybrid", device_state_slots=3, host_cache_mib=0, max_shared_prefixes=1)
    engine = ComparedEngine(pair.cached, pair.cold)
    shared_chats(engine, words, 1)
    engine.answer(words(100), cache=CacheHints(session_id="stays"))
    catalog = engine.warm.parts.catalog._catalog
    (old,) = catalog.shared
    rendered = render([("system", words(80)), ("user", words(40))])
    answer = engine.ask(rendered.ids, 4, rendered.boundaries)
    while old in catalog.shared:
        engine.warm.step()
    (new,) = catalog.shared
    assert new.owner != old.owner
    assert catalog.removed[RemovalReason.SHARED_FULL] == 1
    engine.warm.run(answer)
    engine.warm.run()
    engine.warm.check()


@pytest.mark.parametrize("slots", [0, 1])
def test_who_asks_at_once_waits_for_the_copy_of_what_it_starts_from(
    make_pair: MakePair, words: Words, slots: int
) -> None:
    """States go to Host, a little at every boundary; the next turn comes before they are there."""
    pair = make_pair("hybrid", device_state_slots=slots)
    engine = ComparedEngine(pair.cached, pair.cold, CopyBudget(decoding_bytes=2_000, alone_bytes=2_000))
    messages: list[Message] = [("system", words(40)), ("user", words(80))]
    for _ in range(3):
        rendered = render(messages)
        answer = engine.ask(rendered.ids, 4, rendered.boundaries, cache=CacheHints(session_id="one"))
        engine.warm.run(answer)
        engine.assert_same(answer, rendered.ids)
        last = answer.finished
        messages += [("assistant", answer.tokens), ("user", words(80))]
    assert last.timings.prompt_n < 100 and last.reuse.shortfall.reason is None
    engine.warm.run()
    engine.warm.check()
