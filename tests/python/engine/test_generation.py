"""What a generation does with tokens: sampling fields, ends, text, counts. The model is a random one that speaks."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import ninfer
from ninfer import Engine
from ninfer.engine.generation import Generation
from ninfer.engine.generation_plan import plan_generation
from ninfer.engine.program_gate import ProgramGate
from ninfer.engine.sampling_params import SamplingParams
from ninfer.errors import CapacityError, RequestError
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
    streamed = engine.start(PROMPT, engine.sampling_params(max_tokens=40, temperature=0, ignore_eos=True)).steps()
    assert "".join(step.text for step in streamed) == result.text


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


PADDED_ID = 300  # a row of the embedding (320) beyond the tokenizer's ids (266)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1),
        ("temperature", float("nan")),
        ("temperature", "hot"),
        ("top_p", 1.5),
        ("min_p", -1),
        ("logprobs", 21),
        ("max_tokens", 0),
        ("max_tokens", True),
        ("max_tokens", 2.5),
        ("presence_penalty", 3),
        ("seed", 2**64),
        ("stop", ("",)),
        ("stop", [1]),
        ("stop", 7),
        ("stop_token_ids", [10**6]),
        ("stop_token_ids", [PADDED_ID]),
        ("stop_token_ids", [-1]),
        ("stop_token_ids", ["a"]),
        ("logit_bias", {10**6: 1.0}),
        ("logit_bias", {PADDED_ID: 1.0}),
        ("logit_bias", {"7": 1.0}),
        ("logit_bias", {7: "x"}),
        ("logit_bias", {7: float("nan")}),
        ("logit_bias", [7]),
        ("token_mask", np.ones(3, np.bool_)),
        ("token_mask", [True]),
        ("no_such_field", 1),
    ],
)
def test_an_impossible_field_is_named_and_nothing_stays_open(engine: Engine, field: str, value: object) -> None:
    with pytest.raises(RequestError) as caught:
        engine.generate(PROMPT, **{"max_tokens": 3, field: value})
    assert caught.value.param == field
    assert_usable(engine)


def test_none_means_absent_and_numpy_numbers_are_numbers(engine: Engine) -> None:
    names = [name for name in SamplingParams.__dataclass_fields__ if name not in ("max_tokens", "seed")]
    plain = engine.generate(PROMPT, max_tokens=5, seed=3, ignore_eos=True, temperature=np.float32(0.5))
    nulls = dict.fromkeys(names) | {"ignore_eos": True, "temperature": 0.5}
    assert engine.generate(PROMPT, max_tokens=np.int64(5), seed=3, **nulls).token_ids == plain.token_ids


def test_a_request_that_allows_no_token_is_refused(engine: Engine) -> None:
    nothing = np.zeros(engine.model.program.vocab_size, np.bool_)
    padded = nothing.copy()
    padded[PADDED_ID] = True
    only_end = nothing.copy()
    only_end[7] = True
    with pytest.raises(RequestError, match="no token"):
        engine.generate(PROMPT, max_tokens=3, token_mask=nothing)
    with pytest.raises(RequestError):
        engine.generate(PROMPT, max_tokens=3, token_mask=padded)
    with pytest.raises(RequestError, match="no token"):
        engine.generate(PROMPT, max_tokens=3, token_mask=only_end, stop_token_ids=[7], min_tokens=2)
    valid = engine.model.frontend.tokenizer.vocab_size
    with pytest.raises(RequestError):
        engine.generate(PROMPT, max_tokens=3, logit_bias=dict.fromkeys(range(valid), -np.inf))
    assert_usable(engine)


@pytest.mark.parametrize(
    "prompt",
    [[], [10**6], [-1], [PADDED_ID], [1.7], ["12"], b"abc", [1] * 40000, [None]],
    ids=lambda value: str(value)[:12],
)
def test_prompts_that_are_none_or_do_not_fit_are_refused(engine: Engine, prompt: object) -> None:
    with pytest.raises(RequestError, match="prompt"):
        engine.generate(prompt, max_tokens=1)  # type: ignore[arg-type]  # on purpose
    assert_usable(engine)


def test_the_output_limit_is_lowered_to_the_context(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "hybrid", TinyHybrid(), seed=11)
    with ninfer.load(path, max_context=64, kv_dtype="f32") as engine:
        result = engine.generate(PROMPT, max_tokens=500, temperature=0, ignore_eos=True)
        assert len(result.token_ids) == 64 - len(PROMPT)
        assert result.finish_reason == "length"


def test_more_generations_than_lanes_or_pages_are_refused_and_the_others_go_on(engine: Engine) -> None:
    params = engine.sampling_params(max_tokens=8, temperature=0, ignore_eos=True)
    lanes = engine.model.capacity.max_concurrency
    running = [engine.start(PROMPT, params).steps() for _ in range(lanes)]
    first = [next(steps).token_id for steps in running]
    with pytest.raises(CapacityError, match="no_lane"):
        next(engine.start(PROMPT, params).steps())
    rest = [[step.token_id for step in steps] for steps in running]
    assert all([head, *tail] == [first[0], *rest[0]] for head, tail in zip(first, rest, strict=True))
    assert_usable(engine)


def test_an_abandoned_generation_gives_its_lane_back(engine: Engine) -> None:
    generation = engine.start(PROMPT, engine.sampling_params(max_tokens=8, ignore_eos=True))
    steps = generation.steps()
    next(steps)
    steps.close()
    with pytest.raises(ValueError, match="has not finished"):
        generation.result()
    with pytest.raises(ValueError, match="only once"):
        next(generation.steps())
    assert_usable(engine)


class InterruptedProgram:
    """The real program, except that a signal arrives right after a unit: its pending batch is lost."""

    def __init__(self, program: object, unit: str) -> None:
        self._program = program
        self._unit = unit

    def __getattr__(self, name: str) -> object:
        real = getattr(self._program, name)
        if name != self._unit:
            return real

        def interrupted(*arguments: object) -> object:
            real(*arguments)
            raise KeyboardInterrupt

        return interrupted


@pytest.mark.parametrize("unit", ["finish_prefill", "decode"])
def test_an_interrupt_between_unit_and_commit_leaves_the_engine_usable(engine: Engine, unit: str) -> None:
    gate = ProgramGate(InterruptedProgram(engine.model.program, unit))  # type: ignore[arg-type]  # a stand-in
    plan = plan_generation(engine.model, PROMPT, engine.sampling_params(max_tokens=4, ignore_eos=True))
    with pytest.raises(KeyboardInterrupt):
        list(Generation(gate, engine.model.frontend.tokenizer, plan).steps())
    assert_usable(engine)


def test_threads_take_turns_and_get_the_answers_of_one(engine: Engine) -> None:
    def answer(seed: int) -> list[int]:
        return engine.generate(PROMPT, max_tokens=16, temperature=1.3, seed=seed, ignore_eos=True).token_ids

    alone = [answer(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(answer, range(4))) == alone


def test_a_closed_engine_computes_no_more(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "hybrid", TinyHybrid(), seed=11)
    engine = ninfer.load(path, kv_dtype="f32")
    steps = engine.start(PROMPT, engine.sampling_params(max_tokens=8, ignore_eos=True)).steps()
    next(steps)
    engine.close()
    engine.close()
    for use in (lambda: next(steps), lambda: engine.generate(PROMPT), lambda: engine.logits(PROMPT)):
        with pytest.raises(ValueError, match="closed"):
            use()


def assert_usable(engine: Engine) -> None:
    assert engine.model.program.statistics().lanes_open == 0
    assert len(engine.generate(PROMPT, max_tokens=2, temperature=0, ignore_eos=True).token_ids) == 2
