"""A token's logits are the same bits whatever chunks, threads and instruction set (X1 of docs/design/numerics.md)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ninfer
from tests.fixtures.instruction_sets import instruction_sets_here
from tests.fixtures.model_makers import MakeDirectory
from tests.fixtures.tiny_models import TinyHybrid, TinyLlama, TinyShape

# Two full pages and a part of a third, so that page, chunk and group edges all fall inside.
PROMPT_TOKENS = 150
WEIGHTS = ("f32", "bf16", "q8", "q4")
KV_DTYPES = ("f32", "bf16", "int8")
SHAPES: list[TinyShape] = [TinyHybrid(head_dim=80), TinyLlama(tied=True)]


def _logits(path: Path, weights: str, kv_dtype: str, prompt_seed: int, **options: object) -> np.ndarray:
    ids = [int(one) for one in np.random.default_rng(prompt_seed).integers(3, 320, PROMPT_TOKENS)]
    engine = ninfer.load(path, weights=weights, kv_dtype=kv_dtype, **options)
    try:
        # A request for one instruction set that quietly ran another would make these comparisons say nothing.
        assert options.get("cpu_isa", "auto") in ("auto", engine.model.program.cpu_isa)
        return engine.logits(ids)
    finally:
        engine.close()


def _assert_same_bits(found: np.ndarray, expected: np.ndarray, what: str) -> None:
    # As integers: equal floats of different sign of zero, or two NaNs, would hide or fake a difference.
    differs = np.flatnonzero((found.view(np.uint32) != expected.view(np.uint32)).any(axis=1))
    assert differs.size == 0, f"{what}: {differs.size} positions differ, the first is {differs[0]}"


@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_chunks_and_threads_change_no_bit(
    shape: TinyShape, weights: str, kv_dtype: str, seed: int, tiny_directory: MakeDirectory
) -> None:
    path = tiny_directory(shape)
    expected = _logits(path, weights, kv_dtype, seed, prefill_chunk=4096, threads=1)
    assert np.isfinite(expected).all()
    for chunk, threads in [(1, 1), (7, 2), (64, 1), (65, 2), (4096, 2)]:
        found = _logits(path, weights, kv_dtype, seed, prefill_chunk=chunk, threads=threads)
        _assert_same_bits(found, expected, f"chunk {chunk}, threads {threads}")


@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_instruction_sets_change_no_bit(
    shape: TinyShape, weights: str, kv_dtype: str, seed: int, tiny_directory: MakeDirectory
) -> None:
    path = tiny_directory(shape)
    expected = _logits(path, weights, kv_dtype, seed, prefill_chunk=64, threads=2, cpu_isa="scalar")
    for isa in instruction_sets_here():
        found = _logits(path, weights, kv_dtype, seed, prefill_chunk=64, threads=2, cpu_isa=isa)
        _assert_same_bits(found, expected, isa)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_prefix_has_the_logits_it_has_inside_a_longer_prompt(
    shape: TinyShape, seed: int, tiny_directory: MakeDirectory
) -> None:
    engine = ninfer.load(tiny_directory(shape), weights="q8", kv_dtype="bf16", prefill_chunk=64, threads=2)
    ids = [int(one) for one in np.random.default_rng(seed).integers(3, 320, PROMPT_TOKENS)]
    whole = engine.logits(ids)
    for length in (1, 63, 64, 65, 128, 129):
        _assert_same_bits(engine.logits(ids[:length]), whole[:length], f"prefix {length}")
    engine.close()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_format_is_its_own_computation(shape: TinyShape, seed: int, tiny_directory: MakeDirectory) -> None:
    path = tiny_directory(shape)
    kinds = [(weights, kv_dtype) for weights in WEIGHTS for kv_dtype in KV_DTYPES]
    found = {kind: _logits(path, *kind, seed, prefill_chunk=64, threads=2)[-1].tobytes() for kind in kinds}
    assert len(set(found.values())) == len(kinds)
