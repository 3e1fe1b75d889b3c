"""The packaged demo model says what its `expected.json` says, token by token, wherever the storage format allows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from transformers import AutoTokenizer

import ninfer
from ninfer.demo import HYBRID_DIRECTORY

# A format must agree where the best logit leads by more than this at every step of the answer. f32 always must.
MIN_GAP_BF16 = 0.1
MIN_GAP_Q8 = 0.5
FORMATS = {("f32", "f32"): 0.0, ("bf16", "bf16"): MIN_GAP_BF16, ("q8", "bf16"): MIN_GAP_Q8}
STEPS = 33


@dataclass(frozen=True)
class Step:
    """One answer of one conversation: the rendered prompt, and the greedy tokens with the final end token."""

    name: str
    prompt: list[int]
    token_ids: list[int]
    min_gap: float


@pytest.fixture(scope="module")
def steps() -> list[Step]:
    return list(_steps())


def _steps() -> Iterator[Step]:
    tokenizer = AutoTokenizer.from_pretrained(HYBRID_DIRECTORY)
    for talk in json.loads((HYBRID_DIRECTORY / "expected.json").read_text()):
        options = {"tools": talk["tools"], "enable_thinking": talk["enable_thinking"], "add_generation_prompt": True}
        for index, step in enumerate(talk["steps"]):
            prompt = tokenizer.apply_chat_template(step["messages"], tokenize=True, **options)["input_ids"]
            assert len(prompt) == step["prompt_tokens"]
            yield Step(f"{talk['name']} {index}", prompt, step["token_ids"], step["min_gap"])


@pytest.mark.parametrize(("weights", "kv_dtype"), list(FORMATS))
def test_every_step_is_answered_token_by_token(weights: str, kv_dtype: str, steps: list[Step]) -> None:
    assert len(steps) == STEPS
    required = [step for step in steps if step.min_gap > FORMATS[weights, kv_dtype]]
    assert len(required) >= STEPS - 2  # the thresholds excuse nearly nothing
    engine = ninfer.load(HYBRID_DIRECTORY, weights=weights, kv_dtype=kv_dtype, threads=2)
    wrong = {step.name: found for step in required if (found := _answer(engine, step)) != step.token_ids}
    engine.close()
    assert not wrong


def _answer(engine: Any, step: Step) -> list[int]:
    # Room for more than the answer: the end token must end it.
    return list(engine.generate(step.prompt, max_tokens=len(step.token_ids) + 8, temperature=0).token_ids)
