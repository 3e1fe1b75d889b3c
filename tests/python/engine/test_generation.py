"""What a generation does with tokens: sampling fields, ends, text, counts. The model is a random one that speaks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import ninfer
from ninfer import Engine
from ninfer.errors import RequestError
from tests.fixtures.tiny_models import TinyHybrid, write_tiny_model

PROMPT = list(range(5, 40))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    path = write_tiny_model(tmp_path_factory.mktemp("models") / "hybrid", TinyHybrid(), seed=11)
    with ninfer.load(path, weights="f32", kv_dtype="f32", threads=2) as loaded:
        yield loaded


def naive_greedy(engine: Engine, prompt: list[int], count: int) -> list[int]:
    """Greedy continuation from whole-prompt logits alone: no cache, no sampler, no decode path."""
    ids = list(prompt)
    valid = engine.model.frontend.tokenizer.vocab_size
    for _ in range(count):
        ids.append(int(np.argmax(engine.logits(ids)[-1][:valid])))
    return ids[len(prompt) :]


def test_greedy_equals_argmax_of_recomputed_logits(engine: Engine) -> None:
    result = engine.generate(PROMPT, max_tokens=24, temperature=0, ignore_eos=True)
    assert result.token_ids == naive_greedy(engine, PROMPT, 24)
    assert result.finish_reason == "length"
    assert result.timings.prompt_n == len(PROMPT)
    assert result.timings.predicted_n == 24


def test_text_is_the_one_shot_decoding(engine: Engine) -> None:
    result = engine.generate(PROMPT, max_tokens=40, temperature=0, ignore_eos=True)
    tokenizer = engine.model.frontend.tokenizer
    assert result.text == tokenizer.decode(result.token_ids, skip_special=False)
    assert "".join(
        step.text for step in engine.start(PROMPT, engine.sampling_params(max_tokens=40, temperature=0)).steps()
    )


def test_an_end_token_stops_and_shows_no_text(engine: Engine) -> None:
    free = engine.generate(PROMPT, max_tokens=24, temperature=0, ignore_eos=True)
    end = free.token_ids[9]
    position = free.token_ids.index(end)
    stopped = engine.generate(PROMPT, max_tokens=24, temperature=0, ignore_eos=True, stop_token_ids=[end])
    assert stopped.token_ids == free.token_ids[: position + 1]
    assert stopped.finish_reason == "stop"
    tokenizer = engine.model.frontend.tokenizer
    assert stopped.text == tokenizer.decode(free.token_ids[:position], skip_special=False)


def test_min_tokens_keeps_end_tokens_away(engine: Engine) -> None:
    free = engine.generate(PROMPT, max_tokens=24, temperature=0, ignore_eos=True)
    end = free.token_ids[3]
    held = engine.generate(PROMPT, max_tokens=24, temperature=0, ignore_eos=True, stop_token_ids=[end], min_tokens=12)
    assert end not in held.token_ids[:12]
    assert len(held.token_ids) >= 12


def test_a_stop_string_cuts_across_tokens(engine: Engine) -> None:
    free = engine.generate(PROMPT, max_tokens=48, temperature=0, ignore_eos=True)
    stop = free.text[len(free.text) // 2 : len(free.text) // 2 + 3]
    assert stop
    stopped = engine.generate(PROMPT, max_tokens=48, temperature=0, ignore_eos=True, stop=stop)
    assert stopped.finish_reason == "stop"
    assert stopped.text == free.text[: free.text.index(stop)]


def test_logprobs_are_the_log_softmax_of_the_logits(engine: Engine) -> None:
    result = engine.generate(PROMPT, max_tokens=6, temperature=0.8, seed=3, logprobs=5, ignore_eos=True)
    assert result.logprobs is not None
    valid = engine.model.frontend.tokenizer.vocab_size
    logits = engine.logits(PROMPT + result.token_ids[:-1])[len(PROMPT) - 1 :, :valid].astype(np.float64)
    expected = (
        logits
        - np.log(np.exp(logits - logits.max(1, keepdims=True)).sum(1, keepdims=True))
        - logits.max(1, keepdims=True)
    )
    for row, (token, found) in enumerate(zip(result.token_ids, result.logprobs, strict=True)):
        assert found.token_id == token
        assert found.logprob == pytest.approx(expected[row, token], abs=2e-5)
        best = np.argsort(-expected[row], kind="stable")[:5]
        assert [value for _, value in found.top] == pytest.approx(expected[row, best].tolist(), abs=2e-5)


def test_sampling_repeats_with_its_seed_only(engine: Engine) -> None:
    def sample(seed: int) -> list[int]:
        return engine.generate(PROMPT, max_tokens=32, temperature=1.5, seed=seed, ignore_eos=True).token_ids

    assert sample(1) == sample(1)
    assert sample(1) != sample(2)


def test_other_open_generations_change_nothing(engine: Engine) -> None:
    params = engine.sampling_params(max_tokens=30, temperature=1.2, seed=9, ignore_eos=True)
    alone = [step.token_id for step in engine.start(PROMPT, params).steps()]
    first, second = (engine.start(prompt, params).steps() for prompt in (PROMPT, PROMPT[:7]))
    interleaved = []
    for step in first:
        interleaved.append(step.token_id)
        next(second, None)
    second.close()
    assert interleaved == alone
    assert engine.model.program.statistics().lanes_open == 0


def test_bias_and_mask_decide(engine: Engine) -> None:
    assert set(engine.generate(PROMPT, max_tokens=5, temperature=1, logit_bias={77: 1e4}).token_ids) == {77}
    mask = np.zeros(engine.model.program.vocab_size, np.bool_)
    mask[[50, 60]] = True
    assert set(engine.generate(PROMPT, max_tokens=30, temperature=2, token_mask=mask, seed=1).token_ids) == {50, 60}


def test_penalties_count_output_and_prompt(engine: Engine) -> None:
    free = engine.generate(PROMPT, max_tokens=32, temperature=0, ignore_eos=True).token_ids
    spread = engine.generate(PROMPT, max_tokens=32, temperature=0, ignore_eos=True, frequency_penalty=2.0).token_ids
    assert len(set(spread)) > len(set(free))
    once = engine.generate(PROMPT, max_tokens=32, temperature=0, ignore_eos=True, repetition_penalty=1e4).token_ids
    assert len(set(once)) == len(once), "a token was repeated under an overwhelming penalty"
    assert not set(once) & set(PROMPT)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1),
        ("temperature", float("nan")),
        ("top_p", 1.5),
        ("min_p", -1),
        ("logprobs", 21),
        ("max_tokens", 0),
        ("max_tokens", True),
        ("presence_penalty", 3),
        ("stop", ("",)),
        ("logit_bias", {10**6: 1.0}),
        ("token_mask", np.ones(3, np.bool_)),
        ("no_such_field", 1),
    ],
)
def test_an_impossible_field_is_named_and_nothing_stays_open(engine: Engine, field: str, value: object) -> None:
    with pytest.raises(RequestError) as caught:
        engine.generate(PROMPT, **{"max_tokens": 3, field: value})
    assert caught.value.param == field
    assert engine.model.program.statistics().lanes_open == 0


def test_prompts_that_do_not_fit_are_refused(engine: Engine) -> None:
    for prompt in ([], [10**6], [-1], [1] * (engine.model.capacity.max_context + 1)):
        with pytest.raises(RequestError, match="prompt"):
            engine.generate(prompt, max_tokens=1)


def test_the_output_limit_is_lowered_to_the_context(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "hybrid", TinyHybrid(), seed=11)
    with ninfer.load(path, max_context=64, kv_dtype="f32") as engine:
        result = engine.generate(PROMPT, max_tokens=500, temperature=0, ignore_eos=True)
        assert len(result.token_ids) == 64 - len(PROMPT)
        assert result.finish_reason == "length"
