"""Every reason why a prompt is not reused further, made to happen."""

from __future__ import annotations

import pytest

from ninfer.frontend.prompt_boundaries import MessageBoundary, PromptBoundaries
from ninfer.resources.context_cache_options import ContextCacheOptions
from ninfer.resources.divergence import AdmittedPrompt
from ninfer.resources.removal_reason import RemovalReason
from ninfer.resources.reuse_key import ReuseKey
from ninfer.resources.reuse_report import Divergence, ReuseReason, Shortfall
from ninfer.resources.tombstones import Tombstones
from tests.fixtures.fake_contexts import FakePrompt, digest_of
from tests.python.resources.played_engine import ENDPOINT, PlayedEngine

TEXT = list(range(3000))
RAW = PromptBoundaries(raw=True)
S = ReuseKey(session="s")
CHAT = PromptBoundaries(messages=tuple(MessageBoundary(100 * one, one) for one in range(1, 5)), leading_end=100)
"""System, user, assistant, user, assistant: 100 tokens each."""


@pytest.fixture
def engine() -> PlayedEngine:
    return PlayedEngine()


def shortfall(
    engine: PlayedEngine,
    tokens: list[int],
    reused: int,
    key: ReuseKey | None = None,
    boundaries: PromptBoundaries = RAW,
    refused: int = 0,
) -> Shortfall:
    """And it is counted."""
    found = explained(engine, tokens, reused, key or ReuseKey(), boundaries, refused)
    assert engine.manager.statistics().short == ({found.reason.value: 1} if found.reason else {})
    return found


def explained(
    engine: PlayedEngine,
    tokens: list[int],
    reused: int,
    key: ReuseKey,
    boundaries: PromptBoundaries = RAW,
    refused: int = 0,
) -> Shortfall:
    prompt, unsalted = FakePrompt(tuple(tokens), key.salt), FakePrompt(tuple(tokens)) if key.salt else None
    return engine.manager.divergence(AdmittedPrompt(prompt, key, boundaries, reused, refused, unsalted))


def test_nothing_to_explain_where_all_but_one_token_was_reused(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:500])
    assert shortfall(engine, TEXT[:501], 500) == Shortfall()


def test_nothing_to_explain_where_a_conversation_went_on(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:500])
    assert shortfall(engine, TEXT[:700], 500) == Shortfall()


def test_no_match(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:500])
    assert shortfall(engine, [9] * 100, 0) == Shortfall(reason=ReuseReason.NO_MATCH)


def test_an_empty_catalog_does_not_match(engine: PlayedEngine) -> None:
    assert shortfall(engine, TEXT[:100], 0, ReuseKey(salt="mine")).reason is ReuseReason.NO_MATCH


def test_evicted(engine: PlayedEngine) -> None:
    owner = engine.keep(TEXT[:500])
    engine.release(owner, RemovalReason.CATALOG_FULL)
    assert shortfall(engine, TEXT[:700], 0) == Shortfall(reason=ReuseReason.EVICTED)


def test_what_a_request_consumed_was_not_evicted(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:500])
    engine.begin_best(TEXT[:600])
    assert shortfall(engine, TEXT[:700], 0).reason is ReuseReason.NO_MATCH


def test_no_checkpoint_where_conversations_part_at_their_first_message(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:500])
    other = TEXT[:150] + [9] * 300
    expected = Shortfall(150, Divergence(150, 1), ReuseReason.NO_CHECKPOINT)
    assert shortfall(engine, other, 0, boundaries=CHAT) == expected


def test_no_checkpoint_where_the_prompt_ends_inside_what_is_kept(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:500])
    assert shortfall(engine, TEXT[:300], 0) == Shortfall(299, None, ReuseReason.NO_CHECKPOINT)


def test_rewritten_history_after_a_common_message(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:500], captures=[200])
    changed = TEXT[:350] + [9] * 300
    expected = Shortfall(350, Divergence(350, 3), ReuseReason.REWRITTEN_HISTORY)
    assert shortfall(engine, changed, 200, boundaries=CHAT) == expected


def test_rewritten_history_of_the_own_session(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:500], S)
    expected = Shortfall(50, Divergence(50, 0), ReuseReason.REWRITTEN_HISTORY)
    assert shortfall(engine, TEXT[:50] + [9] * 300, 0, S, CHAT) == expected


def test_an_answer_that_is_spelled_otherwise_was_not_rewritten(engine: PlayedEngine) -> None:
    """Its first 20 tokens come back as they were (D-18); before that, the client has changed something."""
    request = engine.begin(TEXT[:400], S)
    endpoint = engine.contexts.finish(request.owner, tuple(TEXT[:500]), "", ENDPOINT)
    engine.manager.adopt_finish(request.claim, request.owner, ENDPOINT, canonical=420)
    assert engine.contexts.checkpoint(endpoint).frontier == 500
    for at, reason in ((419, ReuseReason.REWRITTEN_HISTORY), (420, ReuseReason.NO_CHECKPOINT)):
        expected = Shortfall(at, Divergence(at, 4), reason)
        assert explained(engine, TEXT[:at] + [9] * 300, 0, S, CHAT) == expected


def test_a_raw_prompt_diverges_in_no_message(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:500])
    expected = Shortfall(350, Divergence(350, None), ReuseReason.NO_CHECKPOINT)
    assert shortfall(engine, TEXT[:350] + [9] * 300, 0) == expected


@pytest.mark.parametrize("has_state", [True, False])
def test_salt_keeps_apart_what_everybody_may_use(has_state: bool) -> None:
    engine = PlayedEngine(has_state=has_state)
    engine.keep(TEXT[:500])
    assert shortfall(engine, TEXT[:700], 0, ReuseKey(salt="mine")) == Shortfall(reason=ReuseReason.SALT)


def test_salt_also_where_a_little_of_the_own_is_equal(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:500])
    engine.keep([*TEXT[:5], *[7] * 100], ReuseKey(salt="mine"))
    found = shortfall(engine, TEXT[:700], 0, ReuseKey(salt="mine"), CHAT)
    assert found == Shortfall(5, Divergence(5, 0), ReuseReason.SALT)


def test_what_somebody_asked_under_another_salt_is_not_told(engine: PlayedEngine) -> None:
    """Else anybody could find out by asking."""
    engine.keep(TEXT[:500], ReuseKey(salt="theirs"))
    for key in (ReuseKey(salt="mine"), ReuseKey()):
        assert explained(engine, TEXT[:700], 0, key).reason is ReuseReason.NO_MATCH


def test_a_salt_is_no_reason_where_nothing_kept_without_one_is_a_start(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:500])
    for tokens in ([9] * 100, TEXT[:400] + [9] * 50):
        assert explained(engine, tokens, 0, ReuseKey(salt="mine")).reason is ReuseReason.NO_MATCH


def test_a_salt_under_which_something_is_kept_is_no_reason(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:500], ReuseKey(salt="mine"))
    assert shortfall(engine, [9] * 100, 0, ReuseKey(salt="mine")).reason is ReuseReason.NO_MATCH


def shared_alone(engine: PlayedEngine) -> None:
    """A shared prefix of 300 tokens; the conversation of 500 that began with it has gone."""
    request = engine.begin(TEXT[:500])
    engine.capture_shared(request, 300)
    engine.finish(request)
    engine.release(request.owner, RemovalReason.PRESSURE)


def test_a_shared_prefix_whose_conversations_are_gone_is_compared(engine: PlayedEngine) -> None:
    shared_alone(engine)
    expected = Shortfall(200, Divergence(200, None), ReuseReason.NO_CHECKPOINT)
    assert shortfall(engine, TEXT[:200] + [9] * 100, 0) == expected


def test_without_recurrent_layers_a_shared_prefix_serves_its_beginnings() -> None:
    engine = PlayedEngine(has_state=False)
    shared_alone(engine)
    (offer,) = engine.offers(TEXT[:200] + [9] * 100)
    assert (offer.use, offer.cell, offer.frontier) == ("retain", None, 300)
    inside = engine.begin(TEXT[:200] + [9] * 100, offer=offer, start=200)
    assert engine.manager.memory_victims(inside.claim) == [], "nobody takes what somebody reads"
    engine.discard(inside)


def test_evicted_inside_what_has_gone() -> None:
    """Without recurrent layers any beginning of it would have served; with them only where a checkpoint was."""
    for has_state, reason in ((False, ReuseReason.EVICTED), (True, None)):
        engine = PlayedEngine(has_state=has_state)
        shared_alone(engine)
        assert shortfall(engine, TEXT[:400] + [9] * 100, 300).reason is reason


def test_evicted_is_not_what_is_still_there_without_recurrent_layers() -> None:
    engine = PlayedEngine(has_state=False)
    shared_alone(engine)
    engine.keep(TEXT[:500])
    assert shortfall(engine, TEXT[:400] + [9] * 100, 400) == Shortfall()


def test_disabled(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:500])
    key = ReuseKey(reads=False, publishes=False)
    assert shortfall(engine, TEXT[:700], 0, key) == Shortfall(reason=ReuseReason.DISABLED)


def test_pressure_refused(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:500])
    found = shortfall(engine, TEXT[:700], 0, refused=500)
    assert found == Shortfall(500, None, ReuseReason.PRESSURE_REFUSED)


def test_what_shares_most_explains(engine: PlayedEngine) -> None:
    engine.keep(TEXT[:500], ReuseKey(session="other"))
    engine.keep(TEXT[:60] + [7] * 300, S)
    expected = Shortfall(350, Divergence(350, 3), ReuseReason.REWRITTEN_HISTORY)
    assert shortfall(engine, TEXT[:350] + [9] * 300, 0, S, CHAT) == expected


def test_the_session_is_compared_although_others_agree_further() -> None:
    engine = PlayedEngine(ContextCacheOptions(max_private_continuations=40))
    engine.keep(TEXT[:500], S)
    for number in range(20):
        engine.keep(TEXT[:400] + [5000 + number] * 100)
    assert shortfall(engine, TEXT[:390] + [9] * 20, 0, S).reason is ReuseReason.REWRITTEN_HISTORY


def test_tombstones_are_a_ring() -> None:
    tombstones = Tombstones(2)
    prompt = FakePrompt(tuple(TEXT[:100]))
    for frontier in (10, 20, 30):
        tombstones.add(frontier, digest_of("", prompt.tokens[:frontier]))
    assert tombstones.deepest(prompt, 99) == 30
    assert tombstones.deepest(prompt, 29) == 20
    assert tombstones.deepest(prompt, 19) == 0
