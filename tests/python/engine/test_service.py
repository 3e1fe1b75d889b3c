"""The engine service over a program that computes nothing: order, fairness, refusals, what is told."""

from __future__ import annotations

import itertools
import threading

import pytest

from ninfer.engine.events import EngineEvent, Finished, PrefillProgress
from ninfer.engine.loaded_model import LoadedModel
from ninfer.engine.request import EngineRequest
from ninfer.engine.sampling_params import SamplingParams
from ninfer.engine.service import EngineHealth
from ninfer.errors import EngineFailedError, QueueFullError, RequestError
from tests.fixtures.event_recorder import EventRecorder
from tests.fixtures.fake_program import FakeProgram
from tests.fixtures.fake_service import (
    CHUNK,
    CHUNK_WHILE_DECODING,
    Clock,
    ask,
    assert_idle,
    make_service,
    prompt_of,
    scripted,
    started,
)


def test_every_request_gets_its_own_answer_in_the_order_of_submission(
    loaded: LoadedModel, recorder: EventRecorder
) -> None:
    program = FakeProgram(lanes=4)
    service = make_service(loaded, program)
    for number in range(20):
        recorder.submit(service, ask(prompt_of(number), 3 + number % 5), number)
    assert service.health == EngineHealth("starting")
    with started(service):
        recorder.wait(range(20))
        assert service.health == EngineHealth("ready")
        assert_idle(service, program)
    assert program.prompts == [prompt_of(number) for number in range(20)]
    for number in range(20):
        count = 3 + number % 5
        assert recorder.tokens(number) == scripted(prompt_of(number), count)
        assert recorder.text(number) == loaded.frontend.tokenizer.decode(recorder.tokens(number), skip_special=False)
        last = recorder.last(number)
        assert isinstance(last, Finished)
        assert (last.finish_reason, last.prompt_tokens, last.completion_tokens) == ("length", 8, count)


def test_decode_rounds_hold_all_ready_rows_between_the_chunks_of_a_long_prompt(
    loaded: LoadedModel, recorder: EventRecorder
) -> None:
    program = FakeProgram(lanes=4)
    service = make_service(loaded, program)
    for number in range(2):
        recorder.submit(service, ask(prompt_of(number), 30), number)
    recorder.submit(service, ask(prompt_of(2, 1001), 5), 2)
    with started(service):
        recorder.wait(range(3))
    prefills = [place for place, unit in enumerate(program.units) if unit[1] == (3,)]
    assert [program.units[place][2] for place in prefills] == [CHUNK_WHILE_DECODING] * 10 + [1]
    for one, following in itertools.pairwise(prefills):
        assert program.units[one + 1 : following] == [("decode", (1, 2), 1)]
    assert program.units[prefills[-1] + 1] == ("decode", (1, 2, 3), 1)


def test_a_prompt_alone_takes_full_chunks_and_a_second_one_waits_for_it(
    loaded: LoadedModel, recorder: EventRecorder
) -> None:
    program = FakeProgram(lanes=4)
    service = make_service(loaded, program)
    recorder.submit(service, ask(prompt_of(0, 1200), 2, report_progress=True), 0)
    recorder.submit(service, ask(prompt_of(1, 300), 2), 1)
    with started(service):
        recorder.wait(range(2))
    first = [unit for unit in program.units if unit[0] != "decode" and unit[1] == (1,)]
    assert first == [("prefill", (1,), CHUNK), ("prefill", (1,), CHUNK), ("finish_prefill", (1,), 200)]
    assert program.units[:3] == first, "another prefill came between"
    progress = [event for event in recorder.events[0] if isinstance(event, PrefillProgress)]
    assert progress == [PrefillProgress(done, 1200) for done in (500, 1000, 1200)]
    assert not any(isinstance(event, PrefillProgress) for event in recorder.events[1])


def test_a_head_without_pages_is_overtaken_by_whom_it_does_not_wait_for(
    loaded: LoadedModel, recorder: EventRecorder
) -> None:
    program = FakeProgram(lanes=4, pages=4)
    service = make_service(loaded, program)
    recorder.submit(service, ask(prompt_of(0, 100), 92), 0)  # three pages
    recorder.submit(service, ask(prompt_of(1, 100), 92), 1)  # three: it waits for the first
    recorder.submit(service, ask(prompt_of(2, 100), 28), 2)  # two, which do not fit beside the first
    recorder.submit(service, ask(prompt_of(3, 10), 5), 3)  # one, which the head does not need
    recorder.submit(service, ask(prompt_of(4, 10), 5), 4)  # one that it would need, as long as the other one runs
    with started(service):
        recorder.wait(range(5))
        view = service.catalog(30.0)
    first = [program.prompts[place][0] - 30 for place in range(3)]
    assert first[:2] == [0, 3], "only one may overtake at once"
    assert sorted(prompt[0] - 30 for prompt in program.prompts) == list(range(5))
    assert view.backfilled >= 1
    assert all(isinstance(recorder.last(number), Finished) for number in range(5))


def test_a_head_is_not_overtaken_by_whom_it_would_wait_for(loaded: LoadedModel, recorder: EventRecorder) -> None:
    program = FakeProgram(lanes=4, pages=4)
    service = make_service(loaded, program)
    recorder.submit(service, ask(prompt_of(0, 100), 92), 0)  # three pages
    recorder.submit(service, ask(prompt_of(1, 200), 50), 1)  # all four
    recorder.submit(service, ask(prompt_of(2, 10), 5), 2)  # one, which is free, but the head needs it
    with started(service):
        recorder.wait(range(3))
        assert service.catalog(30.0).backfilled == 0
    assert program.prompts == [prompt_of(0, 100), prompt_of(1, 200), prompt_of(2, 10)]


def test_a_request_that_could_never_fit_is_refused_at_once(loaded: LoadedModel, recorder: EventRecorder) -> None:
    program = FakeProgram(lanes=2, pages=4)
    service = make_service(loaded, program)
    with pytest.raises(RequestError, match=r"257 tokens.*256"):
        recorder.submit(service, ask(prompt_of(0, 250), 7))
    with pytest.raises(RequestError, match=r"5000 tokens.*4096"):
        recorder.submit(service, ask(prompt_of(0, 5000)))
    with pytest.raises(RequestError, match="stop_token_ids"):
        recorder.submit(service, EngineRequest([30], SamplingParams(stop_token_ids=(10**6,))))
    assert service.snapshot().queued == 0


def test_timings_are_the_clock_and_the_programs_counter(loaded: LoadedModel, recorder: EventRecorder) -> None:
    clock = Clock()
    seconds = {"prefill": 3.0, "finish_prefill": 2.0, "decode": 0.5}

    def hook(unit: str, sequences: list[int]) -> None:
        clock.now += seconds.get(unit, 0.0)

    program = FakeProgram(lanes=1, hook=hook)
    service = make_service(loaded, program, clock=clock)
    recorder.submit(service, ask(prompt_of(0, 600), 5), 0)
    # It came four seconds before its body did.
    recorder.submit(service, ask(prompt_of(1, 8), 10**6, arrived=clock.now - 4.0), 1)
    with started(service):
        first = recorder.last(0)
        recorder.wait([1])
    assert isinstance(first, Finished)
    found = first.timings
    assert (found.prompt_n, found.cache_n, found.predicted_n, found.max_tokens) == (600, 0, 5, 5)
    assert (found.queue_ms, found.prompt_ms, found.predicted_ms) == (0.0, 5000.0, 2000.0)
    second = recorder.last(1)
    assert isinstance(second, Finished)
    assert second.timings.queue_ms == 11_000.0
    assert second.timings.max_tokens == second.completion_tokens == 4096 - 8, "lowered to what the context holds"


def test_a_full_queue_refuses_until_somebody_ends(loaded: LoadedModel, recorder: EventRecorder) -> None:
    program = FakeProgram(lanes=2)
    service = make_service(loaded, program, max_queued=3)
    for number in range(5):
        recorder.submit(service, ask(prompt_of(number)), number)
    with pytest.raises(QueueFullError) as caught:
        recorder.submit(service, ask(prompt_of(5)))
    assert 1 <= caught.value.retry_after <= 60
    with started(service):
        recorder.wait([0])
        recorder.submit(service, ask(prompt_of(6)), 6)
        recorder.wait([1, 2, 3, 4, 6])
        assert_idle(service, program)


def test_hand_over_is_called_once_per_unit_with_all_rows(loaded: LoadedModel) -> None:
    calls: list[list[int]] = []
    ended = threading.Event()

    def hand_over(batch: list[tuple[int, list[EngineEvent]]]) -> None:
        calls.append([request_id for request_id, _ in batch])
        if sum(isinstance(events[-1], Finished) for _, events in batch) and len(calls) > 10:
            ended.set()

    program = FakeProgram(lanes=4)
    service = make_service(loaded, program, hand_over=hand_over)
    ids = [service.submit(ask(prompt_of(number), 20 - number)) for number in range(4)]
    with started(service):
        assert ended.wait(30.0)
    assert len(calls) == len(program.units)
    assert ids in calls


def test_a_question_is_answered_whenever_it_comes(loaded: LoadedModel) -> None:
    """Also between the engine's looks at its mail: one that is overlooked there is seen before the engine sleeps."""
    service = make_service(loaded, FakeProgram())
    asked = service._intake.ask()
    assert service._intake.take_questions() == [asked]
    late = service._intake.ask()
    service._intake.take()
    with started(service):
        assert late.result(30.0) == service.catalog(30.0)
    with pytest.raises(EngineFailedError, match="stopped"):
        service.catalog(30.0)


def test_somebody_must_listen(loaded: LoadedModel) -> None:
    with pytest.raises(ValueError, match="deliver"):
        make_service(loaded, FakeProgram()).submit(ask(prompt_of(0)))


def test_a_question_that_cannot_be_answered_does_not_hang(loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    service = make_service(loaded, FakeProgram())

    def broken() -> None:
        raise RuntimeError("no view")

    monkeypatch.setattr(service._loop, "view", broken)
    asked = [service._intake.ask() for _ in range(2)]
    with started(service):
        for question in asked:
            with pytest.raises(RuntimeError, match="no view"):
                question.result(30.0)
    assert service.health.state == "failed"
