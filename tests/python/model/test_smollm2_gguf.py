"""A real model from a real `.gguf` file: SmolLM2-135M as transformers dequantises it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import AutoTokenizer, PreTrainedModel

import ninfer
from tests.fixtures.smollm2_file import smollm2_gguf
from tests.fixtures.transformers_oracle import load_reference, reference_greedy, reference_logits

PARITY_SHARE_OF_RANGE = 1e-4
GREEDY_TOKENS = 64
Q4_SAME_TOKEN_SHARE = 0.95
PROMPTS = (
    "What is the capital of France?",
    "Write a haiku about the sea.",
    "List three uses of a paper clip, one per line.",
    "def fibonacci(n):\n    # returns the n-th number\n",
    "Translate to German: 'The weather is nice today, isn't it?' — and say why.",
)


@pytest.fixture(scope="module")
def smollm2() -> Path:
    return smollm2_gguf()


@pytest.fixture(scope="module")
def reference(smollm2: Path) -> PreTrainedModel:
    return load_reference(smollm2.parent, gguf_file=smollm2.name)


@pytest.fixture(scope="module")
def texts(smollm2: Path, reference: PreTrainedModel) -> list[tuple[list[int], list[int]]]:
    """(prompt, greedy continuation by transformers) for each of PROMPTS."""
    tokenizer = AutoTokenizer.from_pretrained(smollm2.parent, gguf_file=smollm2.name)
    found = []
    for text in PROMPTS:
        chat = [{"role": "user", "content": text}]
        prompt = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=True)["input_ids"]
        found.append((prompt, reference_greedy(reference, prompt, GREEDY_TOKENS)))
    return found


def _engine(path: Path, weights: str, kv_dtype: str) -> Iterator[Any]:
    engine = ninfer.load(path, weights=weights, kv_dtype=kv_dtype, threads=2)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def engine_f32(smollm2: Path) -> Iterator[Any]:
    yield from _engine(smollm2, "f32", "f32")


@pytest.fixture(scope="module")
def engine_q4(smollm2: Path) -> Iterator[Any]:
    yield from _engine(smollm2, "q4", "bf16")


def test_f32_logits_equal_transformers_at_every_position(
    engine_f32: Any, reference: PreTrainedModel, texts: list[tuple[list[int], list[int]]]
) -> None:
    for prompt, continuation in texts:
        ids = prompt + continuation
        expected = reference_logits(reference, ids)
        share = np.abs(engine_f32.logits(ids) - expected).max(axis=1) / np.ptp(expected)
        assert share.max() <= PARITY_SHARE_OF_RANGE, f"position {share.argmax()}: {share.max():.1e} of the range"


def test_f32_generates_the_tokens_of_transformers(engine_f32: Any, texts: list[tuple[list[int], list[int]]]) -> None:
    for prompt, continuation in texts:
        found = engine_f32.generate(prompt, max_tokens=GREEDY_TOKENS, temperature=0, ignore_eos=True)
        assert list(found.token_ids) == continuation


def test_q4_picks_the_same_token_nearly_always(engine_q4: Any, texts: list[tuple[list[int], list[int]]]) -> None:
    # Along the reference's text, so that one other choice does not make every later step another question.
    same = steps = 0
    for prompt, continuation in texts:
        logits = engine_q4.logits(prompt + continuation[:-1])
        picked = logits[len(prompt) - 1 :].argmax(axis=1)
        same += int((picked == np.array(continuation)).sum())
        steps += len(continuation)
    assert steps == len(PROMPTS) * GREEDY_TOKENS
    assert same / steps >= Q4_SAME_TOKEN_SHARE, f"{same} of {steps}"
