"""What a model computes, in floating point operations: from it come prices where nothing was measured."""

from __future__ import annotations

from dataclasses import dataclass

from ninfer.config.model_config import ModelConfig, Qwen35Config


@dataclass(frozen=True)
class ModelWork:
    """token_flops: matrices and recurrences of one token of a prompt; pair_flops: of each attention pair."""

    token_flops: float
    pair_flops: float


def model_work(config: ModelConfig) -> ModelWork:
    """Two per multiplication and addition. The vocabulary's matrix is left out: a prompt needs it once."""
    feed_forward = 3 * config.hidden_size * config.intermediate_size
    heads = config.heads * config.head_dim
    attention = config.hidden_size * (heads + 2 * config.kv_heads * config.head_dim) + heads * config.hidden_size
    if not isinstance(config, Qwen35Config):
        weights = config.layers * (feed_forward + attention)
        return ModelWork(2.0 * weights, 4.0 * config.layers * heads)
    full = sum(layer == "full_attention" for layer in config.layer_types)
    gated = attention + config.hidden_size * heads
    linear = config.hidden_size * (config.conv_dim + 2 * config.linear_value_dim + 2 * config.linear_value_heads)
    # Decay, delta rule and read-out touch each element of the recurrent state once.
    recurrence = 3 * config.linear_key_head_dim * config.linear_value_dim
    weights = config.layers * feed_forward + full * gated + (config.layers - full) * (linear + recurrence)
    return ModelWork(2.0 * weights, 4.0 * full * heads)
