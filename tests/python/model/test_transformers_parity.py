"""X2 of docs/design/numerics.md: logits of every position equal transformers in f32.

Over every configuration flag, prompt length and chunk.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ninfer
from tests.fixtures.model_makers import MakeDirectory, MakeReference
from tests.fixtures.pairwise import pairwise_rows
from tests.fixtures.tiny_models import TinyFiles, TinyHybrid, TinyLlama, TinyShape
from tests.fixtures.transformers_oracle import reference_logits

PARITY_SHARE_OF_RANGE = 1e-4
PROMPTS = (1, 63, 64, 65, 130)
CHUNKS = (1, 7, 64, 4096)

HYBRID_FLAGS: dict[str, list[Any]] = {
    "pattern": ["LLLFL", "LLLF", "LFFLL", "LLL", "FF", "LLLFLLLFLL"],
    "hidden": [64, 72],
    "intermediate": [96, 100],
    "gqa": [(4, 4), (4, 2), (4, 1), (6, 2)],
    "head_dim": [32, 16, 80],
    "partial_rotary": [0.25, 0.5, 1.0],
    "rope_theta": [1e4, 1e7],
    "rope_scaling": ["none", "linear", "llama3"],
    "key_heads": [1, 2, 3],
    "value_head_ratio": [1, 2, 4],
    "key_head_dim": [16, 32, 40],
    "value_head_dim": [32, 16, 24, 72],
    "conv_width": [4, 2, 3, 1],
    "tied": [True, False],
    "norm_eps": [1e-6, 1e-4],
    "files": [TinyFiles(), TinyFiles(shard_bytes=60_000), TinyFiles(wrapped=True)],
    "prompt": list(PROMPTS),
    "chunk": list(CHUNKS),
}
LLAMA_FLAGS: dict[str, list[Any]] = {
    "layers": [1, 3],
    "hidden": [72, 144],  # transformers wants a multiple of the heads
    "intermediate": [96, 100],
    "gqa": [(4, 4), (4, 2), (4, 1), (6, 2), (9, 3)],
    "head_dim": [16, 32, 80],
    "rope_theta": [1e4, 5e5],
    "rope_scaling": ["none", "linear", "llama3"],
    "tied": [True, False],
    "norm_eps": [1e-6, 1e-4],
    "files": [TinyFiles(), TinyFiles(shard_bytes=60_000)],
    "prompt": list(PROMPTS),
    "chunk": list(CHUNKS),
}
FULL_PRODUCT: list[TinyShape] = [
    TinyHybrid(),
    TinyHybrid(value_head_ratio=4, tied=False),
    TinyLlama(rope_scaling="llama3"),
]


def _shape(row: dict[str, Any]) -> TinyShape:
    flags = {name: value for name, value in row.items() if name not in ("gqa", "files", "prompt", "chunk")}
    flags["heads"], flags["kv_heads"] = row["gqa"]
    return TinyHybrid(**flags) if "pattern" in flags else TinyLlama(**flags)


def _prompt(length: int, seed: int) -> list[int]:
    return [int(one) for one in np.random.default_rng([seed, length]).integers(3, 320, length)]


def _our_logits(path: Path, chunk: int, ids: list[int]) -> np.ndarray:
    engine = ninfer.load(path, weights="f32", kv_dtype="f32", prefill_chunk=chunk, threads=2)
    try:
        return engine.logits(ids)
    finally:
        engine.close()


def _assert_parity(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.dtype == np.float32
    assert found.shape == expected.shape
    share = np.abs(found - expected).max(axis=1) / np.ptp(expected)
    assert share.max() <= PARITY_SHARE_OF_RANGE, f"position {share.argmax()} is off by {share.max():.1e} of the range"


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("shape", FULL_PRODUCT, ids=str)
def test_every_prompt_length_times_every_chunk(
    shape: TinyShape, chunk: int, seed: int, tiny_directory: MakeDirectory, tiny_reference: MakeReference
) -> None:
    engine = ninfer.load(tiny_directory(shape), weights="f32", kv_dtype="f32", prefill_chunk=chunk, threads=2)
    for length in PROMPTS:
        ids = _prompt(length, seed)
        _assert_parity(engine.logits(ids), reference_logits(tiny_reference(shape), ids))
    engine.close()


ROWS = [
    pytest.param(row, id=f"{family}-{index}")
    for family, flags in (("hybrid", HYBRID_FLAGS), ("llama", LLAMA_FLAGS))
    for index, row in enumerate(pairwise_rows(flags))
]


@pytest.mark.parametrize("row", ROWS)
def test_every_pair_of_configuration_flags(
    row: dict[str, Any], seed: int, tiny_directory: MakeDirectory, tiny_reference: MakeReference
) -> None:
    shape, ids = _shape(row), _prompt(row["prompt"], seed)
    found = _our_logits(tiny_directory(shape, row["files"]), row["chunk"], ids)
    _assert_parity(found, reference_logits(tiny_reference(shape), ids))
