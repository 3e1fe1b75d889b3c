"""The sizes and switches that define a model's computation, one frozen dataclass per architecture."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ninfer.config.config_value_error import require
from ninfer.config.rope_config import MAX_ROPE_ANGLE, RopeConfig, inverse_frequencies

LayerType: TypeAlias = Literal["linear_attention", "full_attention"]

# Far above every known model and low enough that a damaged file cannot make us allocate by its numbers.
MAX_LAYERS = 1024
MAX_SIZE = 1 << 24
# What the core's ops assert: cpp/ops/rope_table.cpp, cpp/ops/cpu/norm_rope_append.cpp, cpp/ops/cpu/causal_conv1d.cpp.
MAX_CONTEXT = MAX_ROPE_ANGLE
MAX_HEAD_DIM = 512
MAX_CONV_WIDTH = 8
# The smallest normal f32: below it the core's epsilon could be zero, and a row of zeros would become NaN.
MIN_NORM_EPS = 2.0**-126


@dataclass(frozen=True)
class DecoderConfig:
    """What both families share. Sizes count features, heads, layers or tokens.

    `attention_bias` and `mlp_bias` are always off: a file that turns one on is refused where it is read.
    """

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    rms_norm_eps: float
    rope: RopeConfig
    max_context: int
    tied_embeddings: bool

    def __post_init__(self) -> None:
        for field, value, limit in self._sizes():
            require(1 <= value <= limit, field, f"1 to {limit}", value)
        require(self.heads % self.kv_heads == 0, "kv_heads", f"a divisor of heads {self.heads}", self.kv_heads)
        in_f32 = MIN_NORM_EPS <= self.rms_norm_eps < 1
        require(in_f32, "rms_norm_eps", "between 0 and 1, and not 0 in f32", self.rms_norm_eps)
        require(
            self.rope.rotary_dim <= self.head_dim, "rotary_dim", f"<= head_dim {self.head_dim}", self.rope.rotary_dim
        )
        fastest = max(inverse_frequencies(self.rope))
        require(
            self.max_context * fastest <= MAX_ROPE_ANGLE,
            "max_context",
            f"at most {math.floor(MAX_ROPE_ANGLE / max(fastest, 1.0))} at a rotary frequency of {fastest:g}",
            self.max_context,
        )

    def _sizes(self) -> Iterator[tuple[str, int, int]]:
        yield "vocab_size", self.vocab_size, MAX_SIZE
        yield "hidden_size", self.hidden_size, MAX_SIZE
        yield "intermediate_size", self.intermediate_size, MAX_SIZE
        yield "layers", self.layers, MAX_LAYERS
        yield "heads", self.heads, MAX_SIZE
        yield "kv_heads", self.kv_heads, MAX_SIZE
        yield "head_dim", self.head_dim, MAX_HEAD_DIM
        yield "max_context", self.max_context, MAX_CONTEXT


@dataclass(frozen=True)
class LlamaConfig(DecoderConfig):
    """`LlamaForCausalLM`: plain RMSNorm (x · weight), rotation of whole heads, grouped-query full attention."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.rope.rotary_dim == self.head_dim, "rotary_dim", f"head_dim {self.head_dim}", self.rope.rotary_dim)


@dataclass(frozen=True)
class Qwen35Config(DecoderConfig):
    """Text part of Qwen3.5: `layer_types[i]` says which attention layer i has.

    Norms are zero-centred (x · (1 + weight)) except the gated norm inside linear attention. Full attention always has
    an output gate: q_proj yields, per head, head_dim query features and then head_dim gate features. `mrope_section`
    is kept for the record; text has one position per token, so it does not change the rotation.
    """

    layer_types: tuple[LayerType, ...]
    linear_key_heads: int
    linear_value_heads: int
    linear_key_head_dim: int
    linear_value_head_dim: int
    conv_width: int
    mrope_section: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        found = len(self.layer_types)
        require(found == self.layers, "layer_types", f"{self.layers} entries", f"{found} entries")
        for index, layer_type in enumerate(self.layer_types):
            known = layer_type in ("linear_attention", "full_attention")
            require(known, f"layer_types[{index}]", "linear_attention or full_attention", layer_type)
        require(
            self.linear_value_heads % self.linear_key_heads == 0,
            "linear_value_heads",
            f"a multiple of linear_key_heads {self.linear_key_heads}",
            self.linear_value_heads,
        )

    def _sizes(self) -> Iterator[tuple[str, int, int]]:
        yield from super()._sizes()
        yield "linear_key_heads", self.linear_key_heads, MAX_SIZE
        yield "linear_value_heads", self.linear_value_heads, MAX_SIZE
        yield "linear_key_head_dim", self.linear_key_head_dim, MAX_SIZE
        yield "linear_value_head_dim", self.linear_value_head_dim, MAX_SIZE
        yield "conv_width", self.conv_width, MAX_CONV_WIDTH

    @property
    def linear_key_dim(self) -> int:
        """Features of all linear-attention keys of one token; queries have the same."""
        return self.linear_key_heads * self.linear_key_head_dim

    @property
    def linear_value_dim(self) -> int:
        """Features of all linear-attention values of one token."""
        return self.linear_value_heads * self.linear_value_head_dim

    @property
    def conv_dim(self) -> int:
        """Channels of the causal convolution: queries, keys, values."""
        return 2 * self.linear_key_dim + self.linear_value_dim


ModelConfig: TypeAlias = LlamaConfig | Qwen35Config
