"""Every configuration that is accepted stays inside what the core asserts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ninfer.config.hf_config import config_from_hf
from ninfer.config.model_config import MAX_CONV_WIDTH, MAX_HEAD_DIM, ModelConfig, Qwen35Config
from ninfer.config.rope_config import MAX_ROPE_ANGLE, inverse_frequencies
from ninfer.demo import HYBRID_DIRECTORY
from ninfer.errors import ModelFileError
from ninfer.weights.gguf_config import config_from_gguf
from tests.python.config.test_hf_config import LLAMA
from tests.python.weights.gguf_samples import LLAMA_VALUES, QWEN35_VALUES, VOCAB

FILE = Path("somewhere/config.json")
OPS = Path(__file__).parents[3] / "cpp" / "ops"
HYBRID: dict[str, Any] = json.loads((HYBRID_DIRECTORY / "config.json").read_text())
GGUF = {"llama": LLAMA_VALUES, "qwen35": QWEN35_VALUES}

# Whatever a damaged file may hold in place of any value.
DAMAGE: list[object] = [
    10**400, -(10**400), 10**4000, 1 << 63, 1e308, -1e308, 5e-324, 1e-300, 1e-9, float("nan"), float("inf"),
    0, -1, 1, 2, 3, 9, 513, 514, 1 << 22, (1 << 22) + 1, 0.5, True, "", "abc", [], [1], [[]], {}, {"a": 1}, None,
]  # fmt: skip
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3["original_max_position_embeddings"] = 64


def assert_the_core_takes(config: ModelConfig) -> None:
    angles = [config.max_context * one for one in inverse_frequencies(config.rope)]
    assert all(0 <= angle <= MAX_ROPE_ANGLE for angle in angles), config
    assert 1 <= config.max_context <= MAX_ROPE_ANGLE, config
    assert config.rope.rotary_dim <= config.head_dim <= MAX_HEAD_DIM, config
    assert config.rope.rotary_dim % 2 == 0
    assert config.heads % config.kv_heads == 0
    if isinstance(config, Qwen35Config):
        assert 1 <= config.conv_width <= MAX_CONV_WIDTH, config
        assert config.linear_key_heads > 0 and config.linear_value_heads % config.linear_key_heads == 0, config
        assert config.linear_key_head_dim > 0 and config.linear_value_head_dim > 0


def assert_served_or_named(read: Callable[[], ModelConfig]) -> None:
    outcome = config_or_refusal(read)
    if isinstance(outcome, ModelFileError):
        assert outcome.file == str(FILE)
        assert outcome.key
        assert len(str(outcome)) < 1000
    else:
        assert_the_core_takes(outcome)


def config_or_refusal(read: Callable[[], ModelConfig]) -> ModelConfig | ModelFileError:
    try:
        return read()
    except ModelFileError as error:
        return error


@pytest.mark.parametrize(
    ("source", "constant", "limit"),
    [
        ("rope_table.cpp", "kMaxAngle", MAX_ROPE_ANGLE),
        ("norm_rope_append.h", "kMaxHeadDim", MAX_HEAD_DIM),
        ("cpu/causal_conv1d.cpp", "kMaxWidth", MAX_CONV_WIDTH),
    ],
)
def test_the_limits_are_those_of_the_core(source: str, constant: str, limit: int) -> None:
    [stated] = re.findall(rf"constexpr \S+ {constant} = ([\d.]+);", (OPS / source).read_text())
    assert float(stated) == limit


BASES = {
    "llama": LLAMA | {"rope_theta": 1e4, "max_position_embeddings": 2048, "head_dim": 16, "num_key_value_heads": 2},
    "llama, linear": LLAMA | {"rope_scaling": {"rope_type": "linear", "factor": 2.0}},
    "llama, llama3": LLAMA | {"rope_parameters": LLAMA3 | {"rope_theta": 5e5}},
    "hybrid": HYBRID | {"full_attention_interval": 3},
}


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("damage", DAMAGE, ids=lambda value: repr(value)[:12])
def test_a_damaged_value_is_served_or_named(base: str, damage: object) -> None:
    config = BASES[base]
    for key in [*config, "partial_rotary_factor", "tie_word_embeddings", "layer_types"]:
        assert_served_or_named(partial(config_from_hf, config | {key: damage}, FILE))
    for section in ("rope_scaling", "rope_parameters"):
        for key in [*config.get(section, {}), "partial_rotary_factor", "rope_theta"]:
            changed = config.get(section, {}) | {key: damage}
            assert_served_or_named(partial(config_from_hf, config | {section: changed}, FILE))


@pytest.mark.parametrize("architecture", GGUF)
@pytest.mark.parametrize("damage", DAMAGE, ids=lambda value: repr(value)[:12])
def test_a_damaged_gguf_value_is_served_or_named(architecture: str, damage: object) -> None:
    values = {"general.architecture": architecture, **GGUF[architecture]}
    more = ("rope.freq_base", "rope.scaling.factor", "rope.scale_linear", "rope.scaling.type", "rope.dimension_count")
    keys = [*values, *(f"{architecture}.{key}" for key in more), f"{architecture}.attention.key_length"]
    for key in keys:
        for factors in (None, (1.0,) * 32):
            assert_served_or_named(partial(config_from_gguf, values | {key: damage}, FILE, VOCAB, True, factors))


@pytest.mark.parametrize(
    ("change", "key", "expected"),
    [
        ({"rope_theta": 1e-300}, "rope_theta", "4194304"),
        ({"rope_theta": 5e-324}, "rope_theta", "4194304"),
        ({"rope_scaling": {"type": "linear", "factor": 1e-9}}, "rope_scaling.factor", "4194304"),
        ({"rope_scaling": {"type": "linear", "factor": 1e-320}}, "rope_scaling.factor", "4194304"),
        # Each position alone is possible, all of them together are not.
        ({"rope_scaling": {"type": "linear", "factor": 0.0002}}, "max_position_embeddings", "838"),
        ({"max_position_embeddings": (1 << 22) + 1}, "max_position_embeddings", "4194304"),
        ({"head_dim": 514}, "head_dim", "512"),
        ({"head_dim": 10**400}, "head_dim", "64 bits"),
        ({"rms_norm_eps": 10**400}, "rms_norm_eps", "64 bits"),
        ({"rms_norm_eps": 1e-50}, "rms_norm_eps", "f32"),
        ({"partial_rotary_factor": 1e308}, "partial_rotary_factor", "1"),
    ],
)
def test_limits_of_the_core_are_named(change: dict[str, Any], key: str, expected: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        config_from_hf(LLAMA | change, FILE)
    assert key in caught.value.key
    assert expected in str(caught.value.expected)


def test_the_limits_themselves_are_served() -> None:
    config = config_from_hf(LLAMA | {"max_position_embeddings": 1 << 22, "head_dim": MAX_HEAD_DIM}, FILE)
    assert_the_core_takes(config)


def test_gguf_factors_that_turn_too_fast_are_named() -> None:
    values = {"general.architecture": "llama", **LLAMA_VALUES}
    with pytest.raises(ModelFileError) as caught:
        config_from_gguf(values, FILE, VOCAB, True, (*(1.0,) * 31, 1e-30))
    assert caught.value.key == "rope_freqs.weight[31]"
