"""What llama.cpp's converter does to a checkpoint is undone: a converted model holds the tensors it was made from."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ninfer.config.rope_config import RopeFrequencyFactors, inverse_frequencies
from ninfer.weights.dequantise import as_float32
from ninfer.weights.model_files import ModelFiles
from ninfer.weights.open_model import open_model
from tests.fixtures.llama_cpp_converter import Conversion, convert_to_gguf
from tests.fixtures.seed import SEED
from tests.fixtures.tiny_models import TinyHybrid, TinyLlama, TinyShape, write_tiny_model

# exp and log in f32, on values of A up to 16.
A_LOG_TOLERANCE = 3e-7
# Weight + 1 rounded to f32, for zero-centred norms.
NORM_TOLERANCE = 1.2e-7

# Half a unit in the last place, relative to the value, of what the converter stores.
HALF_STEP = {"f32": 0.0, "bf16": 2.0**-8, "f16": 2.0**-11}


# Half a step of rounding to 8 bits, and up to 127 steps times the rounding of the step itself to f16.
Q8_STEPS = 0.5 + 127 * 2.0**-11

HYBRIDS = {f"{ratio}x": TinyHybrid(value_head_ratio=ratio) for ratio in (1, 2, 4)}
NARROW_HEADS = TinyHybrid(value_head_ratio=2, value_head_dim=16)
LLAMA3 = TinyLlama(rope_scaling="llama3")
OTHERS: dict[str, TinyShape] = {
    "untied hybrid": TinyHybrid(tied=False, pattern="LLLFLLLF", key_heads=4, value_head_ratio=2, conv_width=3),
    "3x hybrid": TinyHybrid(value_head_ratio=3, key_head_dim=32, value_head_dim=32, partial_rotary=0.25),
    "llama": TinyLlama(),
    "tied llama": TinyLlama(tied=True, kv_heads=1, head_dim=32, rope_theta=5e5),
    "linearly scaled llama": TinyLlama(rope_scaling="linear"),
}
WANTED: list[tuple[TinyShape, str]] = [
    *((shape, encoding) for shape in HYBRIDS.values() for encoding in HALF_STEP),
    *((shape, "f32") for shape in (*OTHERS.values(), LLAMA3)),
    *((shape, "q8_0") for shape in (HYBRIDS["2x"], NARROW_HEADS)),
]


@dataclass(frozen=True)
class Converted:
    """Models as transformers wrote them, and what the converter made of them."""

    folder: Path

    def original(self, shape: TinyShape) -> ModelFiles:
        return open_model(self.directory(shape))

    def gguf(self, shape: TinyShape, encoding: str) -> ModelFiles:
        return open_model(self.file(shape, encoding))

    def directory(self, shape: TinyShape) -> Path:
        return self.folder / f"{zlib.crc32(repr(shape).encode()):08x}"

    def file(self, shape: TinyShape, encoding: str) -> Path:
        return self.folder / f"{self.directory(shape).name}-{encoding}.gguf"


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Converted:
    made = Converted(tmp_path_factory.mktemp("converted"))
    for shape in dict.fromkeys(shape for shape, _ in WANTED):
        write_tiny_model(made.directory(shape), shape, SEED)
    convert_to_gguf([Conversion(made.directory(shape), made.file(shape, code), code) for shape, code in WANTED])
    return made


def assert_same_config(original: ModelFiles, converted: ModelFiles) -> None:
    # GGUF keeps these numbers in f32; the length of the section list is all that differs otherwise.
    rope = replace(converted.config.rope, theta=original.config.rope.theta)
    assert converted.config.rope.theta == pytest.approx(original.config.rope.theta, rel=1e-7)
    assert converted.config.rms_norm_eps == pytest.approx(original.config.rms_norm_eps, rel=1e-7)
    same = replace(converted.config, rms_norm_eps=original.config.rms_norm_eps, rope=rope)
    assert same == original.config


def assert_same_values(name: str, original: NDArray[np.float32], found: NDArray[np.float32], half_step: float) -> None:
    assert found.dtype == np.float32
    if name.endswith("A_log"):
        np.testing.assert_allclose(found, original, rtol=0, atol=A_LOG_TOLERANCE, err_msg=name)
    elif name.endswith("norm.weight") and "linear_attn" not in name:
        np.testing.assert_allclose(found, original, rtol=0, atol=NORM_TOLERANCE, err_msg=name)
    else:
        # Values below f16's normal range lose more than half a step; 6e-8 is its smallest step.
        tiny = 6e-8 if half_step else 0.0
        np.testing.assert_allclose(found, original, rtol=half_step, atol=tiny, err_msg=name)


@pytest.mark.parametrize("encoding", HALF_STEP)
@pytest.mark.parametrize("ratio", HYBRIDS)
def test_a_converted_hybrid_holds_every_tensor(converted: Converted, ratio: str, encoding: str) -> None:
    original, found = converted.original(HYBRIDS[ratio]), converted.gguf(HYBRIDS[ratio], encoding)
    assert_same_config(original, found)
    assert found.tensors.keys() == original.tensors.keys()
    for name, tensor in original.tensors.items():
        assert found.tensors[name].shape == tensor.shape, name
        assert_same_values(name, as_float32(tensor), as_float32(found.tensors[name]), HALF_STEP[encoding])


@pytest.mark.parametrize("shape", OTHERS)
def test_other_shapes_convert_without_loss(converted: Converted, shape: str) -> None:
    original, found = converted.original(OTHERS[shape]), converted.gguf(OTHERS[shape], "f32")
    assert_same_config(original, found)
    assert found.tensors.keys() == original.tensors.keys()
    for name, tensor in original.tensors.items():
        assert_same_values(name, as_float32(tensor), as_float32(found.tensors[name]), 0.0)


def test_llama3_scaling_arrives_as_frequency_factors(converted: Converted) -> None:
    original, found = converted.original(LLAMA3), converted.gguf(LLAMA3, "f32")
    assert isinstance(found.config.rope.scaling, RopeFrequencyFactors)
    assert set(found.config.rope.scaling.factors) > {1.0}, "the factors of a scaled model are not all one"
    frequencies = [inverse_frequencies(model.config.rope) for model in (original, found)]
    np.testing.assert_allclose(frequencies[1], frequencies[0], rtol=1e-6)


@pytest.mark.parametrize(("shape", "kept"), [(HYBRIDS["2x"], "Q8_0"), (NARROW_HEADS, "F32")], ids=["32", "16"])
def test_quantised_value_heads_move_as_whole_blocks_where_they_can(
    converted: Converted, shape: TinyHybrid, kept: str
) -> None:
    """Columns of out_proj belong to value heads: blocks of 32 stay as they are if heads are whole blocks."""
    original, found = converted.original(shape), converted.gguf(shape, "q8_0")
    assert found.tensors["layers.0.linear_attn.out_proj.weight"].encoding == kept
    assert found.tensors["layers.0.linear_attn.in_proj_z.weight"].encoding == "Q8_0"
    for name, source in original.tensors.items():
        expected, values = as_float32(source), as_float32(found.tensors[name])
        if found.tensors[name].encoding == "Q8_0" or name.endswith("out_proj.weight"):
            step = np.abs(expected).max() / 127
            np.testing.assert_allclose(values, expected, rtol=0, atol=Q8_STEPS * step, err_msg=name)
