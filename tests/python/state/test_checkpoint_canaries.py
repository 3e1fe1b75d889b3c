"""A checkpoint that is damaged on purpose gives other logits 50 tokens later: a wrong restore would be seen."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ninfer import native
from tests.fixtures.stateful_program import StatefulProgram
from tests.python.state.conftest import MakeProgram, TokenIds

FRONTIER = 150
LATER = 50
# Ten times what parity allows for rounding, so that damage and rounding cannot be confused.
VISIBLE_SHARE_OF_RANGE = 1e-3
LAYER = 1


def _zero_state(own: native.StateProbe, _early: native.StateProbe, _foreign: native.StateProbe) -> None:
    own.recurrent_state(LAYER)[:] = 0


def _drop_convolution(own: native.StateProbe, _early: native.StateProbe, _foreign: native.StateProbe) -> None:
    own.conv_history(LAYER)[:] = 0


def _one_token_early(own: native.StateProbe, early: native.StateProbe, _foreign: native.StateProbe) -> None:
    for layer in range(own.recurrent_layers):
        own.recurrent_state(layer)[:] = early.recurrent_state(layer)
        own.conv_history(layer)[:] = early.conv_history(layer)


def _foreign_page(own: native.StateProbe, _early: native.StateProbe, foreign: native.StateProbe) -> None:
    own.page_table()[1] = foreign.page_table()[1]


Damage = Callable[[native.StateProbe, native.StateProbe, native.StateProbe], None]


def _restored_logits(state: StatefulProgram, ids: list[int], other: list[int], damage: Damage | None) -> np.ndarray:
    """The last logits of a sequence that went through Host at FRONTIER, was damaged, and went on for LATER tokens."""
    program = state.program
    (endpoint,) = program.owner(native.must(program.finish(state.start(ids[:FRONTIER], room=FRONTIER)))).checkpoints
    state.demote(endpoint)
    state.restore(endpoint)
    early = state.start(ids[: FRONTIER - 1], room=FRONTIER)
    foreign = state.start(other[:FRONTIER], room=FRONTIER)
    sequence = state.start_from(endpoint, room=FRONTIER + LATER, consume=True)
    probes = [native.StateProbe(program, one) for one in (sequence, early, foreign)]
    pages = probes[0].page_table().copy()
    if damage is not None:
        damage(*probes)
    found = state.compute(sequence, ids[FRONTIER:])[-1]
    probes[0].page_table()[: len(pages)] = pages  # so that each page goes back to its owner
    for one in (sequence, early, foreign):
        native.must(program.close_sequence(one))
    return found


@pytest.mark.parametrize("damage", [_zero_state, _drop_convolution, _one_token_early, _foreign_page])
def test_damage_after_a_restore_shows_fifty_tokens_later(
    damage: Damage, make_program: MakeProgram, token_ids: TokenIds
) -> None:
    state = make_program("hybrid", "f32")
    ids, other = token_ids(FRONTIER + LATER), token_ids(FRONTIER)
    expected = state.cold(ids)[-1]
    assert np.array_equal(_restored_logits(state, ids, other, None).view(np.uint32), expected.view(np.uint32))
    found = _restored_logits(state, ids, other, damage)
    assert np.abs(found - expected).max() >= VISIBLE_SHARE_OF_RANGE * np.ptp(expected)


def test_a_foreign_page_shows_in_a_model_of_attention_alone(make_program: MakeProgram, token_ids: TokenIds) -> None:
    state = make_program("llama", "f32")
    ids, other = token_ids(FRONTIER + LATER), token_ids(FRONTIER)
    expected = state.cold(ids)[-1]
    found = _restored_logits(state, ids, other, _foreign_page)
    assert np.abs(found - expected).max() >= VISIBLE_SHARE_OF_RANGE * np.ptp(expected)


def _swap_bytes(left: np.ndarray, right: np.ndarray) -> None:
    left[:], right[:] = right.copy(), left.copy()


@pytest.mark.parametrize("part", ["state", "page"])
def test_damage_of_what_went_to_host_and_back_shows(part: str, make_program: MakeProgram, token_ids: TokenIds) -> None:
    """Two checkpoints change a part before they go to Host: the bytes that come back are those that went."""
    state = make_program("hybrid", "f32")
    program = state.program
    ids, other = token_ids(FRONTIER + LATER), token_ids(FRONTIER + LATER)
    (own,) = program.owner(native.must(program.finish(state.start(ids[:FRONTIER], room=FRONTIER)))).checkpoints
    (foreign,) = program.owner(native.must(program.finish(state.start(other[:FRONTIER], room=FRONTIER)))).checkpoints
    probes = [native.CheckpointProbe(program, one) for one in (own, foreign)]
    if part == "state":
        _swap_bytes(probes[0].recurrent_state(LAYER), probes[1].recurrent_state(LAYER))
    else:
        _swap_bytes(probes[0].page(1), probes[1].page(1))
    for one in (own, foreign):
        state.demote(one)
        state.restore(one)
    for one, prompt in ((own, ids), (foreign, other)):
        fork = state.start_from(one, room=FRONTIER + LATER)
        found = state.compute(fork, prompt[FRONTIER:])[-1]
        expected = state.cold(prompt)[-1]
        assert np.abs(found - expected).max() >= VISIBLE_SHARE_OF_RANGE * np.ptp(expected)
        native.must(program.close_sequence(fork))
