"""Configurations from config.json: values, defaults, refusals."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from ninfer.config.hf_config import config_from_hf
from ninfer.config.model_config import LlamaConfig, Qwen35Config
from ninfer.config.rope_config import LinearRopeScaling, Llama3RopeScaling, RopeConfig
from ninfer.demo import HYBRID_DIRECTORY
from ninfer.errors import ModelFileError

FILE = Path("somewhere/config.json")

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 320,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
}
LLAMA3_SCALING = {
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


def demo_config() -> dict[str, Any]:
    config: dict[str, Any] = json.loads((HYBRID_DIRECTORY / "config.json").read_text())
    return config


def test_llama_with_every_optional_key_absent_takes_the_defaults_of_transformers() -> None:
    assert config_from_hf(LLAMA, FILE) == LlamaConfig(
        vocab_size=320,
        hidden_size=64,
        intermediate_size=96,
        layers=3,
        heads=4,
        kv_heads=4,
        head_dim=16,
        rms_norm_eps=1e-5,
        rope=RopeConfig(theta=10000.0, rotary_dim=16),
        max_context=2048,
        tied_embeddings=False,
    )


@pytest.mark.parametrize(
    ("rope", "expected"),
    [
        ({"rope_theta": 5e5}, RopeConfig(5e5, 16)),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}, RopeConfig(5e5, 16)),
        ({"rope_theta": 5e5, "rope_scaling": None}, RopeConfig(5e5, 16)),
        ({"rope_theta": 5e5, "rope_scaling": {}}, RopeConfig(5e5, 16)),
        ({"rope_scaling": {"type": "linear", "factor": 4.0}}, RopeConfig(10000.0, 16, LinearRopeScaling(4.0))),
        ({"rope_parameters": {"rope_type": "linear", "factor": 4}}, RopeConfig(10000.0, 16, LinearRopeScaling(4.0))),
        (
            {"rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", **LLAMA3_SCALING}},
            RopeConfig(5e5, 16, Llama3RopeScaling(8.0, 1.0, 4.0, 64)),
        ),
        (
            {"rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5, **LLAMA3_SCALING}},
            RopeConfig(5e5, 16, Llama3RopeScaling(8.0, 1.0, 4.0, 64)),
        ),
    ],
)
def test_old_and_new_rope_keys_say_the_same(rope: dict[str, Any], expected: RopeConfig) -> None:
    assert config_from_hf(LLAMA | rope, FILE).rope == expected


def test_the_demo_model_is_a_partly_rotated_hybrid() -> None:
    config = config_from_hf(demo_config(), FILE)
    assert isinstance(config, Qwen35Config)
    assert config.layer_types == ("linear_attention", "linear_attention", "full_attention") * 2
    assert config.rope == RopeConfig(1e6, 16)
    assert config.mrope_section == (3, 3, 2)
    assert (config.linear_key_dim, config.linear_value_dim, config.conv_dim) == (64, 128, 256)
    assert config.tied_embeddings


def test_the_text_part_of_a_vision_model_is_the_text_model() -> None:
    text = demo_config()
    outer = {"architectures": ["Qwen3_5ForConditionalGeneration"], "text_config": text, "vision_config": {"depth": 1}}
    assert config_from_hf(outer, FILE) == config_from_hf(text, FILE)
    untied = config_from_hf(outer | {"tie_word_embeddings": False}, FILE)
    assert not untied.tied_embeddings, "the outer switch decides"


def test_layer_types_follow_the_interval_where_they_are_not_listed() -> None:
    config = demo_config()
    del config["layer_types"]
    linear, full = "linear_attention", "full_attention"
    found = config_from_hf(config, FILE)
    assert isinstance(found, Qwen35Config)
    assert found.layer_types == (linear, linear, linear, full, linear, linear)


LLAMA_REFUSALS: list[tuple[dict[str, Any], str]] = [
    ({"architectures": ["MistralForCausalLM"]}, "architectures"),
    ({"architectures": ["Qwen3_5MoeForCausalLM"]}, "architectures"),
    ({"architectures": ["Qwen3_5VisionModel"]}, "architectures"),
    ({"architectures": []}, "architectures"),
    ({"architectures": None}, "architectures"),
    ({"architectures": "LlamaForCausalLM"}, "architectures"),
    ({"auto_map": {"AutoModelForCausalLM": "modeling_x.X"}}, "auto_map"),
    ({"quantization_config": {"quant_method": "gptq"}}, "quantization_config"),
    ({"hidden_act": "gelu"}, "hidden_act"),
    ({"attention_bias": True}, "attention_bias"),
    ({"mlp_bias": True}, "mlp_bias"),
    ({"sliding_window": 4096}, "sliding_window"),
    ({"num_local_experts": 8}, "num_local_experts"),
    ({"vocab_size": None}, "vocab_size"),
    ({"vocab_size": "320"}, "vocab_size"),
    ({"vocab_size": 0}, "vocab_size"),
    ({"vocab_size": True}, "vocab_size"),
    ({"hidden_size": -64}, "hidden_size"),
    ({"hidden_size": 66}, "num_attention_heads"),
    ({"num_hidden_layers": 0}, "num_hidden_layers"),
    ({"num_hidden_layers": 10**12}, "num_hidden_layers"),
    ({"num_attention_heads": 0}, "num_attention_heads"),
    ({"num_key_value_heads": 3}, "num_key_value_heads"),
    ({"head_dim": 15}, "head_dim"),
    ({"rms_norm_eps": 0.0}, "rms_norm_eps"),
    ({"rms_norm_eps": float("nan")}, "rms_norm_eps"),
    ({"max_position_embeddings": 0}, "max_position_embeddings"),
    ({"tie_word_embeddings": 1}, "tie_word_embeddings"),
    ({"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
    ({"rope_theta": 0}, "rope_theta"),
    ({"rope_scaling": "linear"}, "rope_scaling"),
    ({"rope_scaling": {"type": "yarn", "factor": 4.0}}, "rope_scaling.rope_type"),
    ({"rope_scaling": {"type": "dynamic", "factor": 4.0}}, "rope_scaling.rope_type"),
    ({"rope_parameters": {"rope_type": "longrope"}}, "rope_parameters.rope_type"),
    ({"rope_scaling": {"type": "linear"}}, "rope_scaling.factor"),
    ({"rope_scaling": {"type": "linear", "factor": -1}}, "rope_scaling.factor"),
    ({"rope_scaling": LLAMA3_SCALING | {"type": "llama3", "high_freq_factor": 1.0}}, "rope_scaling.high_freq_factor"),
    (
        {"rope_scaling": LLAMA3_SCALING | {"type": "llama3", "original_max_position_embeddings": None}},
        "rope_scaling.original_max_position_embeddings",
    ),
    ({"rope_parameters": {"full_attention": {"rope_theta": 1e4}}}, "rope_parameters.full_attention"),
]


@pytest.mark.parametrize(("change", "key"), LLAMA_REFUSALS, ids=lambda value: json.dumps(value)[:60])
def test_llama_values_that_cannot_be_served_are_refused(change: dict[str, Any], key: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        config_from_hf(LLAMA | change, FILE)
    assert caught.value.file == str(FILE)
    assert key in caught.value.key
    assert caught.value.expected
    assert caught.value.found is not None


QWEN35_REFUSALS: list[tuple[dict[str, Any], str]] = [
    ({"attn_output_gate": False}, "attn_output_gate"),
    ({"output_gate_type": "sigmoid"}, "output_gate_type"),
    ({"num_experts": 64}, "num_experts"),
    ({"layer_types": ["linear_attention"] * 5}, "layer_types"),
    ({"layer_types": ["sliding_attention"] * 6}, "layer_types[0]"),
    ({"layer_types": "linear_attention"}, "layer_types"),
    ({"layer_types": None, "full_attention_interval": 0}, "full_attention_interval"),
    ({"linear_num_key_heads": 3}, "linear_num_value_heads"),
    ({"linear_num_key_heads": 0}, "linear_num_key_heads"),
    ({"linear_conv_kernel_dim": 1000}, "linear_conv_kernel_dim"),
    ({"linear_value_head_dim": None}, "linear_value_head_dim"),
    ({"num_key_value_heads": None}, "num_key_value_heads"),
    ({"rope_parameters": {"mrope_section": [3, 3]}}, "mrope_section"),
    ({"rope_parameters": {"mrope_section": [3, 3, -1]}}, "mrope_section"),
    ({"rope_parameters": {"partial_rotary_factor": 2.0}}, "partial_rotary_factor"),
    ({"rope_parameters": {"partial_rotary_factor": 0.1}}, "partial_rotary_factor"),
]


@pytest.mark.parametrize(("change", "key"), QWEN35_REFUSALS, ids=lambda value: json.dumps(value)[:60])
@pytest.mark.parametrize("nested", [False, True])
def test_qwen35_values_that_cannot_be_served_are_refused(change: dict[str, Any], key: str, nested: bool) -> None:
    config = copy.deepcopy(demo_config()) | change
    if nested:
        config = {"architectures": ["Qwen3_5ForConditionalGeneration"], "text_config": config}
    with pytest.raises(ModelFileError) as caught:
        config_from_hf(config, FILE)
    assert key in caught.value.key
    assert caught.value.key.startswith("text_config.") == nested


def test_a_vision_model_without_a_text_part_is_refused() -> None:
    with pytest.raises(ModelFileError, match="text_config"):
        config_from_hf({"architectures": ["Qwen3_5ForConditionalGeneration"]}, FILE)
