"""Checkpoints that move to Host and back, and are deleted in every order, lose nothing."""

from __future__ import annotations

import random
from itertools import permutations

import pytest

import ninfer
from ninfer import native
from ninfer.demo import HYBRID_DIRECTORY
from tests.fixtures.seed import SEED
from tests.fixtures.stateful_program import StatefulProgram
from tests.python.state.conftest import MakeProgram, TokenIds

FAMILIES = ("hybrid", "llama")
KV_DTYPES = ("f32", "bf16", "int8")
FRONTIERS = (50, 64, 130, 200)


class _Lineage:
    """One history with a checkpoint at each of FRONTIERS, the last one its endpoint."""

    def __init__(self, state: StatefulProgram, history: list[int]) -> None:
        self.state = state
        self.history = history
        program = state.program
        sequence = native.must(program.open_sequence(FRONTIERS[-1], captures=len(FRONTIERS)))
        done = 0
        for frontier in FRONTIERS[:-1]:
            state.compute(sequence, history[done:frontier])
            state.capture(sequence)
            done = frontier
        state.compute(sequence, history[done : FRONTIERS[-1]])
        self.owner = native.must(program.finish(sequence))
        self.checkpoints = dict(zip(FRONTIERS, program.owner(self.owner).checkpoints, strict=True))
        for frontier, checkpoint in self.checkpoints.items():
            assert program.checkpoint(checkpoint).frontier == frontier

    def assert_continues(self, frontier: int, more: list[int]) -> None:
        """Restores the checkpoint if it has to; then a fork of it gives the undisturbed run's bits."""
        checkpoint = self.checkpoints[frontier]
        if not self.state.program.checkpoint(checkpoint).device_ready:
            assert isinstance(self.state.program.open_from(checkpoint, 400), native.Refusal)
            self.state.restore(checkpoint)
        fork = self.state.start_from(checkpoint, room=400)
        self.state.assert_continues(fork, self.history[:frontier], more)
        native.must(self.state.program.close_sequence(fork))

    def delete(self, frontier: int) -> None:
        native.must(self.state.program.delete_checkpoint(self.checkpoints.pop(frontier)))
        self.state.program.check_invariants()


@pytest.mark.parametrize(
    ("family", "kv_dtype"), [("hybrid", "bf16"), ("hybrid", "int8"), ("llama", "bf16"), ("llama", "f32")]
)
def test_deleting_in_every_order_leaves_the_others_whole(
    family: str, kv_dtype: str, make_program: MakeProgram, token_ids: TokenIds
) -> None:
    state = make_program(family, kv_dtype)
    history, more = token_ids(FRONTIERS[-1]), token_ids(6)
    chance = random.Random(SEED)
    idle = state.program.statistics()
    for order in permutations(FRONTIERS):
        lineage = _Lineage(state, history)
        for frontier in order:
            for checkpoint in lineage.checkpoints.values():
                if chance.random() < 0.5 and state.program.checkpoint(checkpoint).device_ready:
                    state.demote(checkpoint)
            lineage.delete(frontier)
            for kept in lineage.checkpoints:
                lineage.assert_continues(kept, more)
        assert isinstance(state.program.owner(lineage.owner), native.Refusal), "an owner without checkpoints is gone"
    found = state.program.statistics()
    assert (found.pages_free, found.used.host_blocks) == (idle.pages_free, idle.used.host_blocks)


@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
@pytest.mark.parametrize("family", FAMILIES)
def test_twenty_round_trips_change_no_bit(
    family: str, kv_dtype: str, make_program: MakeProgram, token_ids: TokenIds
) -> None:
    state = make_program(family, kv_dtype)
    lineage = _Lineage(state, token_ids(FRONTIERS[-1]))
    more = token_ids(6)
    for trip in range(20):
        frontier = FRONTIERS[trip % len(FRONTIERS)]
        checkpoint = lineage.checkpoints[frontier]
        state.demote(checkpoint)
        summary = state.program.checkpoint(checkpoint)
        assert (summary.pages_on_device, summary.image_on_device) == (0, False)
        assert summary.pages_on_host == summary.pages == -(-frontier // 64)
        lineage.assert_continues(frontier, more)
        native.must(state.program.drop(checkpoint, "host"))


def test_a_capture_straight_to_host_is_as_good_as_one_on_device(make_program: MakeProgram, token_ids: TokenIds) -> None:
    state = make_program("hybrid", "bf16", checkpoint_slots=1)
    program = state.program
    history, more = token_ids(100), token_ids(7)
    writer = state.start(history, room=400, captures=3)
    first = state.capture(writer)
    again = state.capture(writer)  # the same frontier: the same image, no second slot
    state.assert_continues(writer, history, more)
    history = [*history, *more]
    refusal = program.capture(writer)
    assert isinstance(refusal, native.Refusal), "the only slot is taken"
    second = state.capture(writer, tier="host")
    assert not program.checkpoint(second).image_on_device
    assert program.checkpoint(second).image_on_host
    state.assert_continues(writer, history, token_ids(20))
    native.must(program.delete_checkpoint(first))
    assert isinstance(program.start_copy(second, "device"), native.Refusal), "`again` still holds the slot"
    native.must(program.delete_checkpoint(again))
    state.restore(second)
    fork = state.start_from(second, room=300)
    state.assert_continues(fork, history, token_ids(20))


def test_a_full_host_refuses_and_changes_nothing(make_program: MakeProgram, token_ids: TokenIds) -> None:
    state = make_program("hybrid", "f32", host_bytes=64 << 10)
    program = state.program
    (endpoint,) = program.owner(native.must(program.finish(state.start(token_ids(300), room=300)))).checkpoints
    before = program.fingerprint()
    refusal = program.start_copy(endpoint, "host")
    assert isinstance(refusal, native.Refusal)
    assert refusal.wanted > refusal.found
    assert program.fingerprint() == before
    assert isinstance(program.drop(endpoint, "device"), native.Refusal), "its only replicas"
    assert program.fingerprint() == before


def test_the_demo_model_remembers_through_host_what_two_users_said() -> None:
    with ninfer.load(HYBRID_DIRECTORY, weights="f32", threads=1, max_context=1024) as engine:
        state = StatefulProgram(HYBRID_DIRECTORY, "bf16")
        answers = {}
        owners = {}
        for name in ("Karin", "Tobias"):
            turns = [
                {"role": "user", "content": f"my name is {name}."},
                {"role": "assistant", "content": "noted."},
                {"role": "user", "content": "what is my name?"},
            ]
            _, ids = engine.chat_prompt_ids(turns)
            answers[name] = (ids, engine.generate(ids, temperature=0).token_ids)
            # All but the last token: at least one is always computed.
            (owners[name],) = state.program.owner(
                native.must(state.program.finish(state.start(ids[:-1], room=len(ids))))
            ).checkpoints
            state.demote(owners[name])
        assert answers["Karin"][1] != answers["Tobias"][1]
        for _ in range(20):
            for name, (ids, expected) in answers.items():
                state.restore(owners[name])
                lane = state.start_from(owners[name], room=len(ids) + len(expected))
                found = _greedy(state, lane, ids[-1], len(expected))
                assert found == list(expected), name
                native.must(state.program.close_sequence(lane))
                state.demote(owners[name])


def _greedy(state: StatefulProgram, sequence: int, last: int, count: int) -> list[int]:
    found: list[int] = []
    for _ in range(count):
        last = int(state.compute(sequence, [last])[0].argmax())
        found.append(last)
    return found
