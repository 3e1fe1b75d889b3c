"""The engine service with a real model under load: whatever else runs, an answer is the one it would be alone."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ninfer
from ninfer import Engine, native
from ninfer.demo import HYBRID_DIRECTORY
from ninfer.engine.events import Cancelled, Finished
from ninfer.engine.request import EngineRequest
from ninfer.engine.sampling_params import SamplingParams
from ninfer.engine.service import EngineService
from tests.fixtures.event_recorder import EventRecorder
from tests.fixtures.seed import SEED

LANES = 8
LOAD_SECONDS = 4.0
LEAST_REQUESTS = 100  # on a machine so busy that the seconds do not suffice
REQUEST_KINDS = 12
# The first kind runs for so many rounds that a cancellation right after its submission always finds it alive.
LONG_TOKENS = 200
LONG_SHARE = 0.2


# The small chunk makes long prompts take several units among the rounds of others; results do not depend on it.
OPTIONS: dict[str, Any] = {"threads": 2, "max_concurrency": LANES, "max_context": 1024, "prefill_chunk": 128}


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with ninfer.load(HYBRID_DIRECTORY, **OPTIONS) as loaded:
        yield loaded


@pytest.fixture
def uncached() -> Iterator[Engine]:
    """With nothing in its program: who has no cache cannot make room either."""
    with ninfer.load(HYBRID_DIRECTORY, context_cache=False, **OPTIONS) as loaded:
        yield loaded


@dataclass(frozen=True)
class Alone:
    """A request and what it computes with nothing beside it."""

    prompt: list[int]
    params: SamplingParams
    token_ids: list[int]
    text: str


def random_requests(engine: Engine, dice: random.Random) -> list[Alone]:
    answers = []
    for kind in range(REQUEST_KINDS):
        prompt = [dice.randrange(20, 400) for _ in range(dice.choice([1, 7, 64, 65, 300, 500]))]
        params = engine.sampling_params(
            max_tokens=LONG_TOKENS if kind == 0 else dice.choice([1, 2, 20, 40]),
            temperature=dice.choice([0.0, 0.9, 1.5]),
            repetition_penalty=dice.choice([1.0, 1.2]),
            ignore_eos=dice.random() < 0.7 or kind == 0,
            min_tokens=dice.choice([0, 5]),
            logprobs=dice.choice([None, 2]),
            seed=kind,
        )
        alone = engine.generate(prompt, **{name: getattr(params, name) for name in params.__dataclass_fields__})
        answers.append(Alone(prompt, params, alone.token_ids, alone.text))
    return answers


def test_answers_under_load_and_random_cancellations_are_those_of_a_request_alone(engine: Engine) -> None:
    print(f"NINFER_TEST_SEED={SEED}")
    dice = random.Random(SEED)
    answers = random_requests(engine, dice)
    baseline = engine.model.program.statistics()
    recorder = EventRecorder()
    service = EngineService(engine.model, max_queued=64)
    service.start()
    asked: dict[int, Alone] = {}
    doomed: list[int] = []
    deadline = time.monotonic() + LOAD_SECONDS
    while time.monotonic() < deadline or len(asked) < LEAST_REQUESTS:
        if len(service.snapshot().requests) < LANES + 4:
            alone = answers[0] if dice.random() < LONG_SHARE else dice.choice(answers)
            request_id = recorder.submit(service, EngineRequest(alone.prompt, alone.params))
            asked[request_id] = alone
            if alone is answers[0]:
                service.cancel(request_id, "gone")
            elif dice.random() < 0.5:
                doomed.append(request_id)
        elif doomed and dice.random() < 0.2:
            service.cancel(doomed.pop(0), "gone")
        else:
            time.sleep(dice.random() * 0.004)
    recorder.wait(asked)
    snapshot = service.snapshot()
    service.stop(30.0)
    ends = [check_against_alone(recorder, request_id, alone) for request_id, alone in asked.items()]
    print(f"{ends.count(True)} finished, {ends.count(False)} cancelled")
    assert ends.count(True) >= 20 and ends.count(False) >= 3
    assert (snapshot.running, snapshot.queued, snapshot.lanes_open) == (0, 0, 0)
    idle = engine.model.program.statistics()
    assert (idle.lanes_open, idle.used.device_pages_reserved) == (baseline.lanes_open, 0) == (0, 0)
    engine.model.program.check_invariants()


def check_against_alone(recorder: EventRecorder, request_id: int, alone: Alone) -> bool:
    """Whether it finished; a cancelled one was told the beginning of the same answer."""
    last = recorder.last(request_id)
    tokens = recorder.tokens(request_id)
    if isinstance(last, Finished):
        assert tokens == alone.token_ids
        assert recorder.text(request_id) == alone.text
        assert last.timings.prompt_n + last.timings.cache_n == last.prompt_tokens == len(alone.prompt)
        assert last.timings.predicted_n == last.completion_tokens == len(tokens)
        return True
    assert last == Cancelled("gone")
    assert tokens == alone.token_ids[: len(tokens)]
    assert alone.text.startswith(recorder.text(request_id))
    return False


class WitnessProgram:
    """The real program, which also keeps the logits of every sampled row under its prompt's first token."""

    def __init__(self, program: native.Program) -> None:
        self._program = program
        self._names: dict[int, int] = {}
        self.logits: dict[int, list[NDArray[np.float32]]] = {}

    def __getattr__(self, name: str) -> object:
        return getattr(self._program, name)

    def append_prompt(self, sequence: int, prompt: native.PreparedPrompt) -> object:
        self._names[sequence] = int(prompt.tokens[0])
        return self._program.append_prompt(sequence, prompt)

    def finish_prefill(self, sequence: int, sampler: object) -> object:
        return self._witness([sequence], self._program.finish_prefill(sequence, sampler))

    def decode(self, rows: list[tuple[int, object]]) -> object:
        return self._witness([sequence for sequence, _ in rows], self._program.decode(rows))

    def _witness(self, sequences: list[int], batch: object) -> object:
        for row, sequence in enumerate(sequences):
            logits = np.asarray(self._program.last_logits(row), np.float32)
            self.logits.setdefault(self._names[sequence], []).append(logits)
        return batch


def test_logits_of_eight_at_once_are_bit_for_bit_those_of_one_alone(uncached: Engine) -> None:
    print(f"NINFER_TEST_SEED={SEED}")
    dice = random.Random(SEED)
    prompts = [[100 + row] + [dice.randrange(20, 400) for _ in range(dice.randrange(1, 400))] for row in range(LANES)]
    together = witnessed(uncached, prompts)
    for prompt in prompts:
        alone = witnessed(uncached, [prompt])[prompt[0]]
        assert np.array_equal(np.stack(together[prompt[0]]), np.stack(alone))


def witnessed(engine: Engine, prompts: list[list[int]]) -> dict[int, list[NDArray[np.float32]]]:
    """Logits of every sampled token, by the prompt's first token."""
    witness = WitnessProgram(engine.model.program)
    watched = replace(engine.model, program=witness)  # type: ignore[arg-type]
    service = EngineService(watched, max_queued=LANES)
    recorder = EventRecorder()
    params = SamplingParams(max_tokens=12, temperature=0.0, ignore_eos=True)
    for prompt in prompts:
        recorder.submit(service, EngineRequest(prompt, params), prompt[0])
    service.start()
    recorder.wait(prompt[0] for prompt in prompts)
    service.stop(30.0)
    assert all(len(rows) == 12 for rows in witness.logits.values())
    return witness.logits
