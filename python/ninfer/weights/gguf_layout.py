"""How llama.cpp's converter stored each tensor, and what undoes it.

Facts of the converter, by architecture:

llama: rows of q_proj and k_proj were permuted within each head from halves (feature i beside i + head_dim / 2) to
neighbouring pairs, because llama.cpp rotates neighbours.

qwen35: A_log was stored as −exp(A_log). One was added to the weight of every norm but the gated one. Where there are
more value heads than key heads, value heads were reordered from "grouped by key head" to "tiled over key heads", in
every tensor that has value heads: rows of z, a, b, dt_bias, A_log, the value part of qkv and of the convolution, and
columns of out_proj. The convolution lost its middle axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ninfer.config.model_config import LlamaConfig, ModelConfig, Qwen35Config

Order: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class GgufEntry:
    """Where a canonical tensor lies: its GGUF name, then what to undo.

    `row_order[i]` is the stored row of row i, `column_order` likewise, moving runs of `column_run` columns together.
    """

    gguf_name: str
    row_order: Order | None = None
    column_order: Order | None = None
    column_run: int = 1
    values: Literal["as stored", "one added", "negative exponential"] = "as stored"


_LLAMA_LAYER = {
    "input_layernorm.weight": "attn_norm.weight",
    "self_attn.q_proj.weight": "attn_q.weight",
    "self_attn.k_proj.weight": "attn_k.weight",
    "self_attn.v_proj.weight": "attn_v.weight",
    "self_attn.o_proj.weight": "attn_output.weight",
    "post_attention_layernorm.weight": "ffn_norm.weight",
    "mlp.gate_proj.weight": "ffn_gate.weight",
    "mlp.up_proj.weight": "ffn_up.weight",
    "mlp.down_proj.weight": "ffn_down.weight",
}
_QWEN35_LAYER = _LLAMA_LAYER | {
    "post_attention_layernorm.weight": "post_attention_norm.weight",
    "self_attn.q_norm.weight": "attn_q_norm.weight",
    "self_attn.k_norm.weight": "attn_k_norm.weight",
    "linear_attn.in_proj_qkv.weight": "attn_qkv.weight",
    "linear_attn.in_proj_z.weight": "attn_gate.weight",
    "linear_attn.in_proj_b.weight": "ssm_beta.weight",
    "linear_attn.in_proj_a.weight": "ssm_alpha.weight",
    "linear_attn.conv1d.weight": "ssm_conv1d.weight",
    "linear_attn.dt_bias": "ssm_dt.bias",
    "linear_attn.A_log": "ssm_a",
    "linear_attn.norm.weight": "ssm_norm.weight",
    "linear_attn.out_proj.weight": "ssm_out.weight",
}
_OUTSIDE_LAYERS = {
    "embed_tokens.weight": "token_embd.weight",
    "norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


def gguf_entry(config: ModelConfig, name: str) -> GgufEntry:
    """The place and treatment of the canonical tensor `name`, which must belong to `config`."""
    gguf_name = _gguf_name(config, name)
    if isinstance(config, LlamaConfig):
        return GgufEntry(gguf_name, row_order=_llama_row_order(config, name))
    if name.endswith("norm.weight") and "linear_attn" not in name:
        return GgufEntry(gguf_name, values="one added")
    if "linear_attn" not in name:
        return GgufEntry(gguf_name)
    return _linear_attention_entry(config, name.split("linear_attn.")[1], gguf_name)


def _gguf_name(config: ModelConfig, name: str) -> str:
    if name in _OUTSIDE_LAYERS:
        return _OUTSIDE_LAYERS[name]
    _, layer, rest = name.split(".", 2)
    return f"blk.{layer}." + (_LLAMA_LAYER if isinstance(config, LlamaConfig) else _QWEN35_LAYER)[rest]


def _llama_row_order(config: LlamaConfig, name: str) -> Order | None:
    if name.endswith("q_proj.weight"):
        return _halves_from_pairs(config.heads, config.head_dim)
    if name.endswith("k_proj.weight"):
        return _halves_from_pairs(config.kv_heads, config.head_dim)
    return None


def _halves_from_pairs(heads: int, head_dim: int) -> Order:
    """Stored rows of each head are pairs (first half, second half); ours are the first half, then the second."""
    return np.arange(heads * head_dim).reshape(heads, head_dim // 2, 2).swapaxes(1, 2).reshape(-1)


def _linear_attention_entry(config: Qwen35Config, part: str, gguf_name: str) -> GgufEntry:
    values: Literal["as stored", "negative exponential"] = "negative exponential" if part == "A_log" else "as stored"
    if config.linear_value_heads == config.linear_key_heads or part == "norm.weight":
        return GgufEntry(gguf_name, values=values)
    features = _grouped_from_tiled(config, config.linear_value_head_dim)
    if part == "out_proj.weight":
        return GgufEntry(gguf_name, column_order=features, column_run=config.linear_value_head_dim)
    if part == "in_proj_z.weight":
        return GgufEntry(gguf_name, row_order=features)
    if part in ("in_proj_qkv.weight", "conv1d.weight"):
        queries_and_keys = 2 * config.linear_key_dim
        order = np.concatenate([np.arange(queries_and_keys), queries_and_keys + features])
        return GgufEntry(gguf_name, row_order=order)
    return GgufEntry(gguf_name, row_order=_grouped_from_tiled(config, 1), values=values)


def _grouped_from_tiled(config: Qwen35Config, head_dim: int) -> Order:
    """Stored value head r · K + g is our head g · R + r, for K key heads with R value heads each."""
    keys, per_key = config.linear_key_heads, config.linear_value_heads // config.linear_key_heads
    return np.arange(keys * per_key * head_dim).reshape(per_key, keys, head_dim).swapaxes(0, 1).reshape(-1)
