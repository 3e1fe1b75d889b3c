"""Rotary frequencies against transformers' own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import LlamaConfig as TransformersLlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from ninfer.config.rope_config import (
    LinearRopeScaling,
    Llama3RopeScaling,
    RopeConfig,
    RopeFrequencyFactors,
    RopeScaling,
    inverse_frequencies,
)

# transformers computes in f32, with a power whose exponent is rounded; ours is f64.
RELATIVE_TOLERANCE = 2e-6


@pytest.mark.parametrize("head_dim", [2, 16, 64, 128])
@pytest.mark.parametrize("theta", [10000.0, 5e5])
@pytest.mark.parametrize(
    ("parameters", "scaling"),
    [
        ({"rope_type": "default"}, None),
        ({"rope_type": "linear", "factor": 4.0}, LinearRopeScaling(4.0)),
        (
            {
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 512,
            },
            Llama3RopeScaling(8.0, 1.0, 4.0, 512),
        ),
    ],
    ids=["default", "linear", "llama3"],
)
def test_frequencies_equal_those_of_transformers(
    head_dim: int, theta: float, parameters: dict[str, float], scaling: RopeScaling | None
) -> None:
    config = TransformersLlamaConfig(
        hidden_size=head_dim, num_attention_heads=1, rope_parameters=parameters | {"rope_theta": theta}
    )
    expected = LlamaRotaryEmbedding(config).inv_freq.to(torch.float64).numpy()
    found = inverse_frequencies(RopeConfig(theta, head_dim, scaling))
    np.testing.assert_allclose(found, expected, rtol=RELATIVE_TOLERANCE)


def test_factors_divide_one_frequency_each() -> None:
    plain = inverse_frequencies(RopeConfig(100.0, 4))
    assert plain == (1.0, 0.1)
    assert inverse_frequencies(RopeConfig(100.0, 4, RopeFrequencyFactors((2.0, 4.0)))) == (0.5, 0.025)


@pytest.mark.parametrize("factors", [(1.0,), (1.0, 0.0), (1.0, float("inf")), (1.0, 1.0, 1.0)])
def test_factors_must_fit_and_be_usable(factors: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="factors"):
        RopeConfig(100.0, 4, RopeFrequencyFactors(factors))
