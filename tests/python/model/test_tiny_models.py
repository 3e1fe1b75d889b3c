"""The random models can see a wrong state: they speak, they remember, and each kind of damage shows 50 tokens later."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tests.fixtures.tiny_models import (
    DISTINCT_IDS_MIN,
    HALF_LIFE_TOKENS,
    TinyFiles,
    TinyHybrid,
    TinyLlama,
    TinyShape,
    half_lives,
    make_tiny_model,
    write_tiny_model,
)
from tests.fixtures.transformers_oracle import load_reference, reference_greedy, reference_logits

SEED = 20261
SHAPES: list[TinyShape] = [
    TinyHybrid(value_head_ratio=1),
    TinyHybrid(value_head_ratio=2, tied=False),
    TinyHybrid(value_head_ratio=4, pattern="LLFLLFL", conv_width=3),
    TinyLlama(),
    TinyLlama(tied=True, rope_scaling="llama3"),
]
FRONTIER = 150
LATER = 50
# Ten times what parity allows for rounding, so that damage and rounding cannot be confused.
VISIBLE_SHARE_OF_RANGE = 1e-3


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_same_seed_gives_the_same_model_and_another_seed_another(shape: TinyShape) -> None:
    first, again = make_tiny_model(shape, SEED).state_dict(), make_tiny_model(shape, SEED).state_dict()
    other = make_tiny_model(shape, SEED + 1).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not any(torch.equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_greedy_text_is_varied(shape: TinyShape) -> None:
    ids = reference_greedy(make_tiny_model(shape, SEED), range(1, 9), 64)
    assert len(set(ids)) >= DISTINCT_IDS_MIN


def test_half_lives_span_the_stated_range() -> None:
    lives = half_lives(make_tiny_model(TinyHybrid(pattern="LLLLF", value_head_ratio=4, key_heads=4), SEED))
    assert lives.size == 4 * 16
    assert lives.min() >= 0.99 * HALF_LIFE_TOKENS[0]
    assert lives.max() <= 1.01 * HALF_LIFE_TOKENS[1]
    # Log-uniform: the median of a log-uniform law over 4..2000 is 89.
    assert 60 < np.median(lives) < 135


def test_directories_load_to_the_same_model(tmp_path: Path) -> None:
    shape = TinyHybrid()
    whole = write_tiny_model(tmp_path / "whole", shape, SEED)
    shards = write_tiny_model(tmp_path / "shards", shape, SEED, TinyFiles(shard_bytes=100_000))
    index = json.loads((shards / "model.safetensors.index.json").read_text())
    assert len(set(index["weight_map"].values())) > 1
    ids = list(range(3, 40))
    expected = reference_logits(make_tiny_model(shape, SEED), ids)
    assert np.array_equal(reference_logits(load_reference(whole), ids), expected)
    assert np.array_equal(reference_logits(load_reference(shards), ids), expected)


def test_a_wrapped_directory_holds_the_same_text_weights_under_longer_names(tmp_path: Path) -> None:
    plain = write_tiny_model(tmp_path / "plain", TinyHybrid(tied=False), SEED)
    wrapped = write_tiny_model(tmp_path / "wrapped", TinyHybrid(tied=False), SEED, TinyFiles(wrapped=True))
    text, both = load_file(plain / "model.safetensors"), load_file(wrapped / "model.safetensors")
    assert torch.equal(text["lm_head.weight"], both["lm_head.weight"])
    name = "layers.0.linear_attn.A_log"
    assert torch.equal(text[f"model.{name}"], both[f"model.language_model.{name}"])
    config = json.loads((wrapped / "config.json").read_text())
    assert config["architectures"] == ["Qwen3_5ForConditionalGeneration"]
    assert config["text_config"]["layer_types"] == ["linear_attention"] * 3 + ["full_attention", "linear_attention"]


def _zero_state(cache: Any, _other: Any) -> None:
    cache.layers[1].recurrent_states[0].zero_()


def _drop_convolution(cache: Any, _other: Any) -> None:
    cache.layers[1].conv_states[0].zero_()


def _foreign_page(cache: Any, other: Any) -> None:
    # Two pages of one sequence may change places unseen: position is in the rotated key, and attention sums over
    # keys in any order. So the page comes from another sequence.
    for mine, theirs in (
        (cache.layers[3].keys, other.layers[3].keys),
        (cache.layers[3].values, other.layers[3].values),
    ):
        mine[:, :, 64:128] = theirs[:, :, 64:128]


def _one_token_early(cache: Any, _other: Any) -> None:
    # Only the recurrent layers can be a token behind unseen by shapes: their state has no length.
    early = _cache_at(FRONTIER - 1)
    for layer, behind in zip(cache.layers, early.layers, strict=True):
        if hasattr(layer, "recurrent_states"):
            layer.recurrent_states[0].copy_(behind.recurrent_states[0])
            layer.conv_states[0].copy_(behind.conv_states[0])


def _ids(seed: int) -> torch.Tensor:
    return torch.randint(3, 320, (1, FRONTIER + LATER), generator=torch.Generator().manual_seed(seed))


def _cache_at(frontier: int, seed: int = SEED) -> Any:
    with torch.no_grad():
        return make_tiny_model(TinyHybrid(), SEED)(input_ids=_ids(seed)[:, :frontier], use_cache=True).cache


@pytest.mark.parametrize("damage", [_zero_state, _drop_convolution, _foreign_page, _one_token_early])
def test_damage_shows_fifty_tokens_later(damage: Callable[[Any, Any], None]) -> None:
    model = make_tiny_model(TinyHybrid(), SEED)
    good = _cache_at(FRONTIER)
    bad = copy.deepcopy(good)
    damage(bad, _cache_at(FRONTIER, SEED + 1))
    suffix = _ids(SEED)[:, FRONTIER:]
    with torch.no_grad():
        expected = model(input_ids=suffix, cache=good, use_cache=True).logits[0, -1].numpy()
        found = model(input_ids=suffix, cache=bad, use_cache=True).logits[0, -1].numpy()
    assert np.abs(found - expected).max() / np.ptp(expected) >= VISIBLE_SHARE_OF_RANGE
