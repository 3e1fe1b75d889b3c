"""Damage to live state on purpose is seen in the logits 50 tokens later, so that a wrong restore would be, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import ninfer
from ninfer import Engine, native
from ninfer.native import StateProbe
from tests.fixtures.model_makers import MakeDirectory
from tests.fixtures.tiny_models import TinyHybrid

FRONTIER = 150
LATER = 50
# Ten times what parity allows for rounding, so that damage and rounding cannot be confused.
VISIBLE_SHARE_OF_RANGE = 1e-3
DAMAGED_LAYER = 1


@pytest.fixture(scope="module")
def engine(tiny_directory: MakeDirectory) -> Iterator[Engine]:
    with ninfer.load(tiny_directory(TinyHybrid()), weights="f32", kv_dtype="f32", prefill_chunk=64, threads=2) as one:
        yield one


def _ids(seed: int) -> list[int]:
    return [int(one) for one in np.random.default_rng(seed).integers(3, 320, FRONTIER + LATER)]


@contextmanager
def _sequence(engine: Engine, ids: list[int]) -> Iterator[int]:
    """A sequence that has computed `ids`, with room for LATER more tokens."""
    program = engine.model.program
    sequence = native.must(program.open_sequence(FRONTIER + LATER))
    _append(engine, sequence, ids)
    yield sequence
    native.must(program.close_sequence(sequence))


def _append(engine: Engine, sequence: int, ids: list[int]) -> np.ndarray:
    """Logits after the last of `ids`."""
    program = engine.model.program
    native.must(program.append(sequence, np.asarray(ids, np.int32)))
    logits = np.empty((len(ids), program.vocab_size), np.float32)
    done = 0
    while done < len(ids):
        done += native.must(program.prefill_logits(sequence, logits[done : done + engine.model.prefill_chunk]))
    return logits[-1]


def _zero_state(probe: StateProbe, _early: StateProbe, _foreign: StateProbe) -> None:
    state = probe.recurrent_state(DAMAGED_LAYER)
    assert np.any(state)
    state[:] = 0


def _drop_convolution(probe: StateProbe, _early: StateProbe, _foreign: StateProbe) -> None:
    history = probe.conv_history(DAMAGED_LAYER)
    assert np.any(history)
    history[:] = 0


def _one_token_early(probe: StateProbe, early: StateProbe, _foreign: StateProbe) -> None:
    for layer in range(probe.recurrent_layers):
        assert not np.array_equal(probe.recurrent_state(layer), early.recurrent_state(layer))
        probe.recurrent_state(layer)[:] = early.recurrent_state(layer)
        probe.conv_history(layer)[:] = early.conv_history(layer)


def _foreign_page(probe: StateProbe, _early: StateProbe, foreign: StateProbe) -> None:
    # Two pages of one sequence may change places unseen: the position is in the rotated key, and attention sums over
    # the keys. So the page is another sequence's.
    probe.page_table()[1] = foreign.page_table()[1]


Damage = Callable[[StateProbe, StateProbe, StateProbe], None]


def _later_logits(engine: Engine, seed: int, damage: Damage) -> np.ndarray:
    ids, program = _ids(seed), engine.model.program
    with (
        _sequence(engine, ids[:FRONTIER]) as sequence,
        _sequence(engine, ids[: FRONTIER - 1]) as early,
        _sequence(engine, _ids(seed + 1)[:FRONTIER]) as foreign,
    ):
        probe = StateProbe(program, sequence)
        pages = probe.page_table().copy()
        damage(probe, StateProbe(program, early), StateProbe(program, foreign))
        found = _append(engine, sequence, ids[FRONTIER:])
        probe.page_table()[: len(pages)] = pages  # so that each page goes back to its owner
    return found


def test_without_damage_a_split_sequence_has_the_same_bits(engine: Engine, seed: int) -> None:
    found = _later_logits(engine, seed, lambda *_: None)
    assert np.array_equal(found.view(np.uint32), engine.logits(_ids(seed))[-1].view(np.uint32))


@pytest.mark.parametrize("damage", [_zero_state, _drop_convolution, _one_token_early, _foreign_page])
def test_damage_shows_fifty_tokens_later(damage: Damage, engine: Engine, seed: int) -> None:
    expected = engine.logits(_ids(seed))[-1]
    found = _later_logits(engine, seed, damage)
    assert np.abs(found - expected).max() >= VISIBLE_SHARE_OF_RANGE * np.ptp(expected)
