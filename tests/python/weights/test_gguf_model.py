"""GGUF models: encodings kept or dequantised, rows and columns put back, foreign files refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ninfer.config.rope_config import LinearRopeScaling, RopeFrequencyFactors
from ninfer.errors import ModelFileError
from ninfer.weights.dequantise import as_float32
from ninfer.weights.model_files import GenerationDefaults, ModelFiles
from ninfer.weights.open_model import open_model
from ninfer.weights.tensor_source import BLOCKS, ArrayTensor, FileTensor
from tests.python.weights.gguf_samples import (
    HEAD_DIM,
    HEADS,
    HIDDEN,
    KEY_DIM,
    LLAMA_VALUES,
    QWEN35_VALUES,
    VALUE_DIM,
    VALUE_HEADS,
    VOCAB,
    Arrays,
    Values,
    llama_arrays,
    qwen35_arrays,
    stored_values,
    write_gguf,
)


@pytest.mark.parametrize("type_name", ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q6_K"])
def test_llama_tensors_equal_the_dequantised_values(tmp_path: Path, type_name: str) -> None:
    arrays = llama_arrays()
    model = open_model(write_gguf(tmp_path / "x.gguf", "llama", LLAMA_VALUES, arrays, type_name))
    kept = type_name if type_name in BLOCKS else "F32"
    q_proj, v_proj = (model.tensors[f"layers.0.self_attn.{name}_proj.weight"] for name in "qv")
    assert (q_proj.encoding, v_proj.encoding) == (kept, kept)
    assert isinstance(q_proj, ArrayTensor)
    assert isinstance(v_proj, FileTensor) == (type_name in BLOCKS)
    np.testing.assert_array_equal(as_float32(v_proj), stored_values(arrays["blk.0.attn_v.weight"], type_name))
    pairs = stored_values(arrays["blk.0.attn_q.weight"], type_name).reshape(HEADS, HEAD_DIM // 2, 2, HIDDEN)
    halves = np.concatenate([pairs[:, :, 0], pairs[:, :, 1]], axis=1).reshape(HEADS * HEAD_DIM, HIDDEN)
    np.testing.assert_array_equal(as_float32(q_proj), halves)
    np.testing.assert_array_equal(as_float32(model.tensors["norm.weight"]), arrays["output_norm.weight"])


@pytest.mark.parametrize("type_name", ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0"])
def test_qwen35_value_heads_return_to_their_key_heads(tmp_path: Path, type_name: str) -> None:
    arrays = qwen35_arrays()
    model = open_model(write_gguf(tmp_path / "x.gguf", "qwen35", QWEN35_VALUES, arrays, type_name))

    def ours(name: str) -> NDArray[np.float32]:
        return as_float32(model.tensors[f"layers.0.linear_attn.{name}"])

    # Stored head order is (k0 v0)(k1 v0)(k0 v1)(k1 v1); ours keeps the value heads of a key head together.
    heads = [0, 2, 1, 3]
    columns = stored_values(arrays["blk.0.ssm_out.weight"], type_name).reshape(HIDDEN, VALUE_HEADS, 32)
    np.testing.assert_array_equal(ours("out_proj.weight"), columns[:, heads].reshape(HIDDEN, VALUE_DIM))
    rows = stored_values(arrays["blk.0.attn_gate.weight"], type_name).reshape(VALUE_HEADS, 32, HIDDEN)
    np.testing.assert_array_equal(ours("in_proj_z.weight"), rows[heads].reshape(VALUE_DIM, HIDDEN))
    qkv = stored_values(arrays["blk.0.attn_qkv.weight"], type_name)
    np.testing.assert_array_equal(ours("in_proj_qkv.weight")[: 2 * KEY_DIM], qkv[: 2 * KEY_DIM])
    value_rows = qkv[2 * KEY_DIM :].reshape(VALUE_HEADS, 32, HIDDEN)[heads].reshape(VALUE_DIM, HIDDEN)
    np.testing.assert_array_equal(ours("in_proj_qkv.weight")[2 * KEY_DIM :], value_rows)
    convolution = arrays["blk.0.ssm_conv1d.weight"][2 * KEY_DIM :].reshape(VALUE_HEADS, 32, 4)[heads]
    np.testing.assert_array_equal(ours("conv1d.weight")[2 * KEY_DIM :, 0], convolution.reshape(VALUE_DIM, 4))
    np.testing.assert_array_equal(ours("dt_bias"), arrays["blk.0.ssm_dt.bias"][heads])
    np.testing.assert_allclose(ours("A_log"), np.log(-arrays["blk.0.ssm_a"][heads]), rtol=1e-6)
    np.testing.assert_array_equal(ours("norm.weight"), arrays["blk.0.ssm_norm.weight"])
    norm = as_float32(model.tensors["layers.1.self_attn.q_norm.weight"])
    np.testing.assert_array_equal(norm, arrays["blk.1.attn_q_norm.weight"] - np.float32(1))


def opened(tmp_path: Path, architecture: str, values: Values, arrays: Arrays | None = None) -> ModelFiles:
    base = LLAMA_VALUES if architecture == "llama" else QWEN35_VALUES
    made = arrays if arrays is not None else (llama_arrays() if architecture == "llama" else qwen35_arrays())
    merged = {key: value for key, value in {**base, **values}.items() if value is not None}
    return open_model(write_gguf(tmp_path / "x.gguf", architecture, merged, made))


def test_defaults_and_end_tokens_come_from_the_metadata(tmp_path: Path) -> None:
    model = opened(tmp_path, "llama", {"tokenizer.ggml.bos_token_id": 1})
    assert model.generation.eos_ids == (2, 5)
    assert model.generation.bos_id == 1
    assert model.config.rope.theta == 10000.0
    assert model.config.rope.scaling is None
    assert model.config.tied_embeddings
    assert model.gguf_metadata is not None
    assert model.gguf_metadata["tokenizer.ggml.tokens"][:2] == ["t0", "t1"]


def test_sampling_defaults_come_from_the_metadata_where_it_has_them(tmp_path: Path) -> None:
    silent = opened(tmp_path, "llama", {}).generation
    assert silent == GenerationDefaults(eos_ids=(2, 5))
    sampling = {"temp": 0.25, "top_k": 20, "top_p": 0.5, "min_p": 0.125, "penalty_repeat": 1.5}
    found = opened(tmp_path, "llama", {f"general.sampling.{key}": value for key, value in sampling.items()}).generation
    expected = GenerationDefaults((2, 5), None, None, None, 0.25, 20, 0.5, 0.125, 1.5)
    assert found == expected


def test_rope_scaling_comes_from_metadata_or_tensor(tmp_path: Path) -> None:
    scaled = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}
    assert opened(tmp_path, "llama", scaled).config.rope.scaling == LinearRopeScaling(4.0)
    factors = np.linspace(1, 8, HEAD_DIM // 2, dtype=np.float32)
    arrays = llama_arrays() | {"rope_freqs.weight": factors}
    expected = RopeFrequencyFactors(tuple(float(one) for one in factors))
    assert opened(tmp_path, "llama", {}, arrays).config.rope.scaling == expected


def test_prediction_layers_are_passed_over(tmp_path: Path) -> None:
    arrays = qwen35_arrays() | {"blk.2.nextn.eh_proj.weight": np.ones((HIDDEN, 2 * HIDDEN), np.float32)}
    model = opened(tmp_path, "qwen35", {"qwen35.block_count": 3, "qwen35.nextn_predict_layers": 1}, arrays)
    assert model.config.layers == 2


def without(arrays: Arrays, name: str) -> Arrays:
    return {key: array for key, array in arrays.items() if key != name}


REFUSALS: dict[str, tuple[str, Values, Callable[[Arrays], Arrays] | None, str]] = {
    "mixture of experts": ("llama", {"llama.expert_count": 8}, None, "llama.expert_count"),
    "yarn": ("llama", {"llama.rope.scaling.type": "yarn"}, None, "llama.rope.scaling.type"),
    "partial rotation of llama": ("llama", {"llama.rope.dimension_count": 32}, None, "llama.rope.dimension_count"),
    "heads do not divide": ("llama", {"llama.attention.head_count": 3}, None, "llama.attention.head_count"),
    "no layers": ("llama", {"llama.block_count": 0}, None, "llama.block_count"),
    "far too many layers": ("llama", {"llama.block_count": 4_000_000_000}, None, "llama.block_count"),
    "size missing": ("llama", {"llama.embedding_length": None}, None, "llama.embedding_length"),
    "size as text": ("llama", {"llama.embedding_length": "256"}, None, "llama.embedding_length"),
    "sliding window": ("llama", {"llama.attention.sliding_window": 64}, None, "llama.attention.sliding_window"),
    "scaled logits": ("llama", {"llama.logit_scale": 0.5}, None, "llama.logit_scale"),
    "one file of several": ("llama", {"split.count": 3}, None, "split.count"),
    "vocabulary size": ("llama", {"llama.vocab_size": 95}, None, "llama.vocab_size"),
    "end token without a row": ("llama", {"tokenizer.ggml.eos_token_id": VOCAB}, None, "tokenizer.ggml.eos_token_id"),
    "end of message no id": ("llama", {"tokenizer.ggml.eom_token_id": "x"}, None, "tokenizer.ggml.eom_token_id"),
    "temperature below zero": ("llama", {"general.sampling.temp": -1.0}, None, "general.sampling.temp"),
    "top_p above one": ("llama", {"general.sampling.top_p": 1.5}, None, "general.sampling.top_p"),
    "top_k no number": ("llama", {"general.sampling.top_k": "x"}, None, "general.sampling.top_k"),
    "penalty of zero": ("llama", {"general.sampling.penalty_repeat": 0.0}, None, "general.sampling.penalty_repeat"),
    "different key heads per layer": (
        "qwen35",
        {"qwen35.attention.head_count_kv": [1, 2]},
        None,
        "qwen35.attention.head_count_kv",
    ),
    "value heads": ("qwen35", {"qwen35.ssm.group_count": 3}, None, "qwen35.ssm.time_step_rank"),
    "inner size": ("qwen35", {"qwen35.ssm.inner_size": 127}, None, "qwen35.ssm.inner_size"),
    "recurrent layers": (
        "qwen35",
        {"qwen35.attention.recurrent_layers": [True]},
        None,
        "qwen35.attention.recurrent_layers",
    ),
    "value length": ("qwen35", {"qwen35.attention.value_length": 32}, None, "qwen35.attention.value_length"),
    "tensor missing": ("llama", {}, lambda all_: without(all_, "blk.0.attn_q.weight"), "blk.0.attn_q.weight"),
    "embedding missing": ("llama", {}, lambda all_: without(all_, "token_embd.weight"), "token_embd.weight"),
    "shape wrong": (
        "llama",
        {},
        lambda all_: all_ | {"blk.0.attn_q.weight": all_["blk.0.attn_k.weight"]},
        "blk.0.attn_q.weight",
    ),
    "bias": ("llama", {}, lambda all_: all_ | {"blk.0.attn_q.bias": np.ones(256, np.float32)}, "blk.0.attn_q.bias"),
    "rope factors": (
        "llama",
        {},
        lambda all_: all_ | {"rope_freqs.weight": np.ones(3, np.float32)},
        "rope_freqs.weight",
    ),
    "rope factor zero": (
        "llama",
        {},
        lambda all_: all_ | {"rope_freqs.weight": np.zeros(32, np.float32)},
        "rope_freqs.weight",
    ),
}


@pytest.mark.parametrize("reason", REFUSALS)
def test_models_that_cannot_be_served_are_refused(tmp_path: Path, reason: str) -> None:
    architecture, values, change, key = REFUSALS[reason]
    arrays = llama_arrays() if architecture == "llama" else qwen35_arrays()
    with pytest.raises(ModelFileError) as caught:
        opened(tmp_path, architecture, values, change(arrays) if change else arrays)
    assert caught.value.file == str(tmp_path / "x.gguf")
    assert key in caught.value.key


@pytest.mark.parametrize("architecture", ["qwen35moe", "qwen3next", "gpt2"])
def test_other_architectures_are_refused(tmp_path: Path, architecture: str) -> None:
    path = write_gguf(tmp_path / "x.gguf", architecture, {}, {"token_embd.weight": np.ones((2, 2), np.float32)})
    with pytest.raises(ModelFileError, match="llama or qwen35"):
        open_model(path)


def test_a_stored_decay_that_is_not_negative_is_refused_when_loaded(tmp_path: Path) -> None:
    model = opened(tmp_path, "qwen35", {}, qwen35_arrays() | {"blk.0.ssm_a": np.zeros(VALUE_HEADS, np.float32)})
    with pytest.raises(ModelFileError, match=r"exp\(A_log\)"):
        as_float32(model.tensors["layers.0.linear_attn.A_log"])
