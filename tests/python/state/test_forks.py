"""Sequences that fork at every offset of a page go on with the bits of an undisturbed run."""

from __future__ import annotations

import pytest

from ninfer import native
from tests.fixtures.stateful_program import PAGE_TOKENS, StatefulProgram
from tests.python.state.conftest import MakeProgram, TokenIds

FAMILIES = ("hybrid", "llama")
KV_DTYPES = ("f32", "bf16", "int8")


@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
@pytest.mark.parametrize("family", FAMILIES)
def test_writer_and_fork_go_on_exactly_from_every_offset(
    family: str, kv_dtype: str, make_program: MakeProgram, token_ids: TokenIds
) -> None:
    state = make_program(family, kv_dtype)
    program = state.program
    idle = program.statistics()
    base = token_ids(2 * PAGE_TOKENS)
    ours, theirs = token_ids(70), token_ids(70)
    for frontier in range(PAGE_TOKENS, 2 * PAGE_TOKENS):
        prefix = base[:frontier]
        writer = state.start(prefix, room=512, captures=1)
        copies = program.capture_shape(writer).copies
        assert copies == (1 if frontier % PAGE_TOKENS else 0)
        checkpoint = state.capture(writer)
        fork = state.start_from(checkpoint, room=512)
        # In turns, so that each one's pages are written while the other's live.
        state.assert_continues(writer, prefix, ours[:5])
        state.assert_continues(fork, prefix, theirs[:5])
        state.assert_continues(writer, [*prefix, *ours[:5]], ours[5:])
        native.must(program.close_sequence(writer))  # its own checkpoint goes with it, the fork stays
        state.assert_continues(fork, [*prefix, *theirs[:5]], theirs[5:])
        native.must(program.close_sequence(fork))
        program.check_invariants()
    _assert_idle(state, idle)


@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_checkpoint_at_every_offset_goes_to_host_and_back(
    family: str, kv_dtype: str, make_program: MakeProgram, token_ids: TokenIds
) -> None:
    state = make_program(family, kv_dtype)
    program = state.program
    idle = program.statistics()
    base, more = token_ids(PAGE_TOKENS), token_ids(5)
    for frontier in range(1, PAGE_TOKENS + 1):
        prefix = base[:frontier]
        owner = native.must(program.finish(state.start(prefix, room=frontier)))
        (endpoint,) = program.owner(owner).checkpoints
        state.demote(endpoint)
        summary = program.checkpoint(endpoint)
        assert (summary.pages_on_device, summary.image_on_device) == (0, False)
        state.restore(endpoint)
        fork = state.start_from(endpoint, room=frontier + len(more))
        state.assert_continues(fork, prefix, more[:1])  # until then it may read the checkpoint's image
        native.must(program.release_owner(owner))
        state.assert_continues(fork, [*prefix, *more[:1]], more[1:])
        native.must(program.close_sequence(fork))
    _assert_idle(state, idle)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_finished_sequence_is_continued_by_move_and_by_fork(
    family: str, make_program: MakeProgram, token_ids: TokenIds
) -> None:
    state = make_program(family, "bf16")
    program = state.program
    idle = program.statistics()
    for length in (1, 63, 64, 65, 127, 128, 129):
        history = token_ids(length)
        (endpoint,) = program.owner(native.must(program.finish(state.start(history, room=300)))).checkpoints
        for turn in range(3):
            more = token_ids(10)
            fork = state.start_from(endpoint, room=400)
            state.assert_continues(fork, history, token_ids(7))
            native.must(program.close_sequence(fork))
            moved = state.start_from(endpoint, room=400, consume=True)
            assert isinstance(program.checkpoint(endpoint), native.Refusal), f"turn {turn}: it was consumed"
            state.assert_continues(moved, history, more)
            history = [*history, *more]
            owner = native.must(program.finish(moved))
            (endpoint,) = program.owner(owner).checkpoints
            assert program.checkpoint(endpoint).frontier == len(history)
        native.must(program.release_owner(owner))
    _assert_idle(state, idle)


@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
def test_a_model_without_recurrent_layers_forks_below_its_checkpoint(
    kv_dtype: str, make_program: MakeProgram, token_ids: TokenIds
) -> None:
    state = make_program("llama", kv_dtype)
    history = token_ids(200)
    (endpoint,) = state.program.owner(native.must(state.program.finish(state.start(history, room=200)))).checkpoints
    for frontier in (1, 63, 64, 65, 128, 150, 199):
        fork = native.must(state.program.open_from(endpoint, 300, frontier=frontier))
        state.finish_copies()
        state.assert_continues(fork, history[:frontier], token_ids(9))
        native.must(state.program.close_sequence(fork))


def test_a_hybrid_never_forks_below_its_checkpoint(make_program: MakeProgram, token_ids: TokenIds) -> None:
    state = make_program("hybrid", "bf16")
    program = state.program
    (endpoint,) = program.owner(native.must(program.finish(state.start(token_ids(100), room=100)))).checkpoints
    before = program.fingerprint()
    refusal = program.open_from(endpoint, 300, frontier=99)
    assert isinstance(refusal, native.Refusal)
    assert (refusal.wanted, refusal.found) == (99, 100)
    assert program.fingerprint() == before


def _assert_idle(state: StatefulProgram, idle: native.ProgramStatistics) -> None:
    state.program.check_invariants()
    found = state.program.statistics()
    for name in ("pages_free", "lanes_open", "owners", "checkpoints", "copies_open"):
        assert getattr(found, name) == getattr(idle, name), name
