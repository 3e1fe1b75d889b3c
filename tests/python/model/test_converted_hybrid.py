"""A hybrid that went through llama.cpp's converter computes what its safetensors directory computes."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import ninfer
from tests.fixtures.llama_cpp_converter import Conversion, convert_to_gguf
from tests.fixtures.model_makers import MakeDirectory
from tests.fixtures.tiny_models import TinyHybrid

# The file stores -exp(A_log) and norm weights + 1, each rounded to f32 once more; nothing else may differ.
CONVERTED_SHARE_OF_RANGE = 1e-5
PROMPT_TOKENS = 130


def _logits(path: Path, ids: list[int]) -> np.ndarray:
    engine = ninfer.load(path, weights="f32", kv_dtype="f32", threads=2)
    try:
        return engine.logits(ids)
    finally:
        engine.close()


SHAPES = [
    TinyHybrid(value_head_ratio=ratio, key_heads=3, tied=tied) for ratio, tied in product((1, 2, 4), (True, False))
]


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory, tiny_directory: MakeDirectory) -> dict[TinyHybrid, Path]:
    folder = tmp_path_factory.mktemp("converted")
    files = {shape: folder / f"{index}.gguf" for index, shape in enumerate(SHAPES)}
    convert_to_gguf([Conversion(tiny_directory(shape), file, "f32") for shape, file in files.items()])
    return files


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_logits_survive_the_conversion(
    shape: TinyHybrid, seed: int, converted: dict[TinyHybrid, Path], tiny_directory: MakeDirectory
) -> None:
    ids = [int(one) for one in np.random.default_rng(seed).integers(3, 320, PROMPT_TOKENS)]
    expected = _logits(tiny_directory(shape), ids)
    found = _logits(converted[shape], ids)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= CONVERTED_SHARE_OF_RANGE * np.ptp(expected)
