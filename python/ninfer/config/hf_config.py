"""A model configuration from a Hugging Face `config.json`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ninfer.config.config_fields import ConfigFields
from ninfer.config.hf_rope import rope_from_hf
from ninfer.config.model_config import MAX_LAYERS, LayerType, LlamaConfig, ModelConfig, Qwen35Config

LLAMA = "LlamaForCausalLM"
QWEN35 = "Qwen3_5ForCausalLM"
QWEN35_WITH_VISION = "Qwen3_5ForConditionalGeneration"
ARCHITECTURES = (LLAMA, QWEN35, QWEN35_WITH_VISION)

# Dataclass field → key of config.json, where the two differ.
_KEYS = {
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "max_context": "max_position_embeddings",
    "tied_embeddings": "tie_word_embeddings",
    "linear_key_heads": "linear_num_key_heads",
    "linear_value_heads": "linear_num_value_heads",
    "conv_width": "linear_conv_kernel_dim",
    "rotary_dim": "rope_parameters.partial_rotary_factor",
}


def config_from_hf(config: Mapping[str, object], file: Path) -> ModelConfig:
    """The configuration that `config` (the parsed JSON of `file`) describes.

    Raises ModelFileError for an unknown architecture, a missing or impossible value, and every value that would ask
    for a computation this program does not have.
    """
    top = ConfigFields(config, file)
    if top.get("auto_map") is not None:
        top.fail("auto_map", "absent: code that comes with a model is never run", top.get("auto_map"))
    _refuse_quantisation(top)
    architecture = _architecture(top)
    if architecture == LLAMA:
        return _llama(top)
    if architecture == QWEN35:
        return _qwen35(top, tied=top.boolean("tie_word_embeddings", False))
    text = top.section("text_config")
    if text is None:
        top.fail("text_config", "a mapping", "nothing")
    _refuse_quantisation(text)
    # The outer switch decides, as in transformers; files that leave it out state it in the text part.
    tied = top.boolean("tie_word_embeddings", text.boolean("tie_word_embeddings", False))
    return _qwen35(text, tied)


def _architecture(top: ConfigFields) -> str:
    names = top.items("architectures")
    expected = "one of " + ", ".join(ARCHITECTURES)
    if not names:
        top.fail("architectures", expected, "nothing")
    if len(names) != 1 or names[0] not in ARCHITECTURES:
        top.fail("architectures", expected, ", ".join(str(name) for name in names))
    return names[0]


def _refuse_quantisation(fields: ConfigFields) -> None:
    fields.must_be("quantization_config")
    fields.must_be("compression_config")


def _shared_sizes(fields: ConfigFields, default_max_context: int) -> dict[str, Any]:
    fields.must_be("hidden_act", "silu")
    fields.must_be("attention_bias", False)
    fields.must_be("mlp_bias", False)
    fields.must_be("use_sliding_window", False)
    fields.must_be("sliding_window", 0)
    for key in ("num_experts", "num_local_experts", "n_routed_experts"):
        fields.must_be(key, 0)
    return {
        "vocab_size": fields.size("vocab_size"),
        "hidden_size": fields.size("hidden_size"),
        "intermediate_size": fields.size("intermediate_size"),
        "layers": fields.size("num_hidden_layers"),
        "heads": fields.size("num_attention_heads"),
        "rms_norm_eps": fields.number("rms_norm_eps", 1e-6),
        "max_context": fields.integer("max_position_embeddings", default_max_context),
    }


def _llama(fields: ConfigFields) -> LlamaConfig:
    sizes = _shared_sizes(fields, default_max_context=2048)
    heads, hidden = sizes["heads"], sizes["hidden_size"]
    if fields.get("head_dim") is None and hidden % heads:
        fields.fail("num_attention_heads", f"a divisor of hidden_size {hidden}", heads)
    head_dim = fields.size("head_dim", hidden // heads)
    with fields.naming(_KEYS):
        return LlamaConfig(
            **sizes,
            kv_heads=fields.integer("num_key_value_heads", heads),
            head_dim=head_dim,
            rope=rope_from_hf(fields, head_dim, default_partial=1.0).rope,
            tied_embeddings=fields.boolean("tie_word_embeddings", False),
        )


def _qwen35(fields: ConfigFields, tied: bool) -> Qwen35Config:
    # These two are not read by transformers, but published files carry them and other values would be other models.
    fields.must_be("attn_output_gate", True)
    fields.must_be("output_gate_type", "swish", "silu")
    sizes = _shared_sizes(fields, default_max_context=32768)
    head_dim = fields.size("head_dim", 256)
    rope = rope_from_hf(fields, head_dim, default_partial=0.25)
    with fields.naming(_KEYS):
        return Qwen35Config(
            **sizes,
            kv_heads=fields.integer("num_key_value_heads"),
            head_dim=head_dim,
            rope=rope.rope,
            tied_embeddings=tied,
            layer_types=_layer_types(fields, sizes["layers"]),
            linear_key_heads=fields.integer("linear_num_key_heads"),
            linear_value_heads=fields.integer("linear_num_value_heads"),
            linear_key_head_dim=fields.integer("linear_key_head_dim"),
            linear_value_head_dim=fields.integer("linear_value_head_dim"),
            conv_width=fields.integer("linear_conv_kernel_dim"),
            mrope_section=rope.mrope_section,
        )


def _layer_types(fields: ConfigFields, layers: int) -> tuple[LayerType, ...]:
    named = fields.items("layer_types")
    if named is not None:
        return cast(tuple[LayerType, ...], named)
    return layer_types_every(fields.size("full_attention_interval", 4), layers)


def layer_types_every(interval: int, layers: int) -> tuple[LayerType, ...]:
    """Linear attention, except that every `interval`-th layer has full attention."""
    count = min(layers, MAX_LAYERS + 1)
    return tuple("linear_attention" if (i + 1) % interval else "full_attention" for i in range(count))
