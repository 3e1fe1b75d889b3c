"""Which tensors a configuration needs, of which shape, and the checks of a file against that table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ninfer.config.model_config import DecoderConfig, ModelConfig, Qwen35Config
from ninfer.errors import ModelFileError

Shapes = dict[str, tuple[int, ...]]


def expected_tensors(config: ModelConfig) -> Shapes:
    """Canonical name → shape of every tensor of the model; `lm_head.weight` only if the embeddings are not tied."""
    hidden = config.hidden_size
    shapes: Shapes = {"embed_tokens.weight": (config.vocab_size, hidden)}
    for index in range(config.layers):
        linear = isinstance(config, Qwen35Config) and config.layer_types[index] == "linear_attention"
        layer = _linear_attention(config) if linear and isinstance(config, Qwen35Config) else _full_attention(config)
        layer |= _layer_rest(config)
        shapes |= {f"layers.{index}.{name}": shape for name, shape in layer.items()}
    shapes["norm.weight"] = (hidden,)
    if not config.tied_embeddings:
        shapes["lm_head.weight"] = (config.vocab_size, hidden)
    return shapes


def check_tensors(
    config: ModelConfig, found: Mapping[str, tuple[int, ...]], stored_names: Mapping[str, str], file: Path
) -> None:
    """Raises ModelFileError for the first tensor that is missing, has another shape, or is not part of the model.

    `found` maps canonical names to shapes, `stored_names` maps them to the names in the file, which errors tell.
    `file` is the file that says which tensors there are.
    """
    expected = expected_tensors(config)
    for name, shape in expected.items():
        if name not in found:
            raise ModelFileError(file, stored_names.get(name, name), f"a tensor of shape {list(shape)}", "nothing")
        if found[name] != shape:
            key, expected_shape = stored_names.get(name, name), f"shape {list(shape)}"
            raise ModelFileError(file, key, expected_shape, f"shape {list(found[name])}")
    for name, shape in found.items():
        if name not in expected:
            key = stored_names.get(name, name)
            raise ModelFileError(file, key, "no such tensor in this architecture", f"shape {list(shape)}")


def check_vocabulary(config: DecoderConfig, tokenizer_size: int, file: Path) -> None:
    """Raises ModelFileError if the tokenizer (of `file`) knows ids that have no embedding row.

    `tokenizer_size` is its highest id plus one. Fewer ids than rows is normal: vocabularies are padded.
    """
    if tokenizer_size > config.vocab_size:
        expected = f"at most vocab_size {config.vocab_size} token ids"
        raise ModelFileError(file, "vocabulary", expected, f"{tokenizer_size} token ids")


def _full_attention(config: ModelConfig) -> Shapes:
    hidden, head_dim = config.hidden_size, config.head_dim
    query_rows, kv_rows = config.heads * head_dim, config.kv_heads * head_dim
    gated = isinstance(config, Qwen35Config)
    shapes: Shapes = {
        "self_attn.q_proj.weight": (2 * query_rows if gated else query_rows, hidden),
        "self_attn.k_proj.weight": (kv_rows, hidden),
        "self_attn.v_proj.weight": (kv_rows, hidden),
        "self_attn.o_proj.weight": (hidden, query_rows),
    }
    if gated:
        shapes |= {"self_attn.q_norm.weight": (head_dim,), "self_attn.k_norm.weight": (head_dim,)}
    return shapes


def _linear_attention(config: Qwen35Config) -> Shapes:
    hidden, value_heads, value_dim = config.hidden_size, config.linear_value_heads, config.linear_value_dim
    return {
        "linear_attn.in_proj_qkv.weight": (config.conv_dim, hidden),
        "linear_attn.in_proj_z.weight": (value_dim, hidden),
        "linear_attn.in_proj_b.weight": (value_heads, hidden),
        "linear_attn.in_proj_a.weight": (value_heads, hidden),
        "linear_attn.conv1d.weight": (config.conv_dim, 1, config.conv_width),
        "linear_attn.dt_bias": (value_heads,),
        "linear_attn.A_log": (value_heads,),
        "linear_attn.norm.weight": (config.linear_value_head_dim,),
        "linear_attn.out_proj.weight": (hidden, value_dim),
    }


def _layer_rest(config: DecoderConfig) -> Shapes:
    hidden, intermediate = config.hidden_size, config.intermediate_size
    return {
        "input_layernorm.weight": (hidden,),
        "post_attention_layernorm.weight": (hidden,),
        "mlp.gate_proj.weight": (intermediate, hidden),
        "mlp.up_proj.weight": (intermediate, hidden),
        "mlp.down_proj.weight": (hidden, intermediate),
    }
