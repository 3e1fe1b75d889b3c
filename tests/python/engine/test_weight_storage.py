"""Which storage each matrix gets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ninfer.config.engine_options import WeightsOption
from ninfer.engine.native_model import weight_storage
from ninfer.weights.tensor_source import ArrayTensor, Encoding, FileTensor, encoded_bytes

SHAPE = (32, 64)


def matrix(encoding: Encoding, name: str = "layers.0.mlp.up_proj.weight") -> FileTensor:
    return FileTensor(name, SHAPE, encoding, Path("model"), 0, encoded_bytes(encoding, SHAPE))


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [("F32", "f32"), ("F16", "f32"), ("BF16", "bf16"), ("Q8_0", "q8"), ("Q4_0", "q4"), ("Q4_1", "q4")],
)
def test_auto_keeps_what_the_file_stores(encoding: Encoding, expected: str) -> None:
    assert weight_storage(matrix(encoding), "auto") == expected


def test_auto_rounds_foreign_quantised_types_to_q8_and_plain_arrays_not() -> None:
    def load() -> np.ndarray:
        return np.zeros(SHAPE, np.float32)

    assert weight_storage(ArrayTensor("x.weight", SHAPE, "F32", load, "Q6_K"), "auto") == "q8"
    assert weight_storage(ArrayTensor("x.weight", SHAPE, "F32", load), "auto") == "f32"


@pytest.mark.parametrize("option", ["f32", "bf16", "q8", "q4"])
def test_an_option_decides_for_every_projection(option: WeightsOption) -> None:
    for encoding in ("F32", "BF16", "Q8_0", "Q4_1"):
        assert weight_storage(matrix(encoding), option) == option


@pytest.mark.parametrize("name", ["layers.0.linear_attn.in_proj_a.weight", "layers.3.linear_attn.in_proj_b.weight"])
def test_quantising_spares_the_gates(name: str) -> None:
    assert weight_storage(matrix("BF16", name), "q8") == "bf16"
    assert weight_storage(matrix("F32", name), "q4") == "f32"
    assert weight_storage(matrix("BF16", name), "f32") == "f32"


@pytest.mark.parametrize("name", ["embed_tokens.weight", "lm_head.weight"])
def test_q4_keeps_the_vocabulary_in_q8(name: str) -> None:
    assert weight_storage(matrix("BF16", name), "q4") == "q8"
    assert weight_storage(matrix("BF16", name), "q8") == "q8"
