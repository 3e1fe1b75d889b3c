"""How requests end over a program that computes nothing: cancelled in every state, late, shut down, failed."""

from __future__ import annotations

import gc
import sys
import threading
import time

import pytest

from ninfer.engine.events import Cancelled, EngineEvent, Failed, Finished
from ninfer.engine.loaded_model import LoadedModel
from ninfer.engine.request import Request
from ninfer.engine.service import EngineHealth
from ninfer.errors import EngineFailedError
from tests.fixtures.event_recorder import EventRecorder
from tests.fixtures.fake_program import FakeProgram, scripted_token
from tests.fixtures.fake_service import (
    CHUNK,
    Clock,
    ask,
    assert_idle,
    make_service,
    prompt_of,
    scripted,
    started,
)

# What is running when the cancellation comes: (unit, which one of the victim's) -> output tokens the victim still gets.
CANCELLATIONS = [
    ("queued", 0, 0),
    ("prefill", 1, 0),
    ("finish_prefill", 1, 0),
    ("first commit", 1, 1),
    ("decode", 1, 1),
    ("decode", 5, 5),
    ("decode", 7, 7),  # the round of the last token
]


@pytest.mark.parametrize(("moment", "count", "tokens"), CANCELLATIONS)
def test_a_cancelled_request_ends_within_one_unit_and_others_go_on(
    loaded: LoadedModel, recorder: EventRecorder, moment: str, count: int, tokens: int
) -> None:
    seen = 0

    def hook(unit: str, sequences: list[int]) -> None:
        nonlocal seen
        if moment == "queued":
            if unit == "decode" and len(program.units) == 4:
                service.cancel(victim, "gone")
            return
        if unit == moment.split()[-1] and 2 in sequences:
            seen += 1
            if seen == count:
                service.cancel(victim, "gone")
                service.cancel(victim, "a later reason does not count")

    program = FakeProgram(lanes=1 if moment == "queued" else 3, hook=hook)
    service = make_service(loaded, program)
    recorder.submit(service, ask(prompt_of(0), 30), 0)
    victim = recorder.submit(service, ask(prompt_of(1, 150), 8), 1)
    recorder.submit(service, ask(prompt_of(2), 30), 2)
    with started(service):
        assert recorder.last(1) == Cancelled("gone")
        recorder.wait([0, 2])
        service.cancel(victim, "too late")
        assert_idle(service, program)
    assert recorder.tokens(1) == scripted(prompt_of(1, 150), tokens)
    for number in (0, 2):
        assert recorder.tokens(number) == scripted(prompt_of(number), 30)


def test_a_prompt_that_is_cancelled_alone_computes_no_further_chunk(
    loaded: LoadedModel, recorder: EventRecorder
) -> None:
    program = FakeProgram(hook=lambda unit, sequences: service.cancel(victim, "gone"))
    service = make_service(loaded, program)
    victim = recorder.submit(service, ask(prompt_of(0, 2000)), 0)
    with started(service):
        assert recorder.last(0) == Cancelled("gone")
        assert_idle(service, program)
    assert program.units == [("prefill", (1,), CHUNK)]


def test_a_cancellation_after_the_last_commit_is_too_late(loaded: LoadedModel, recorder: EventRecorder) -> None:
    def hook(unit: str, sequences: list[int]) -> None:
        if unit == "commit" and len(program.units) == 5:
            service.cancel(victim, "gone")

    program = FakeProgram(hook=hook)
    service = make_service(loaded, program)
    victim = recorder.submit(service, ask(prompt_of(0), 5), 0)
    with started(service):
        assert isinstance(recorder.last(0), Finished)
        assert_idle(service, program)
    assert recorder.tokens(0) == scripted(prompt_of(0), 5)


def test_deadlines_end_queued_and_running_requests(loaded: LoadedModel, recorder: EventRecorder) -> None:
    clock = Clock()

    def hook(unit: str, sequences: list[int]) -> None:
        clock.now += 1.0 if unit == "decode" else 0.0

    program = FakeProgram(lanes=1, hook=hook)
    service = make_service(loaded, program, clock=clock)
    recorder.submit(service, ask(prompt_of(0), 30, timeout_s=10.0), 0)
    recorder.submit(service, ask(prompt_of(1), 3, timeout_s=4.0), 1)
    recorder.submit(service, ask(prompt_of(2), 3, timeout_s=1000.0), 2)
    recorder.submit(service, ask(prompt_of(3), 3, timeout_s=1000.0, arrived=clock.now - 995.0), 3)
    with started(service):
        recorder.wait(range(4))
        assert_idle(service, program)
    assert recorder.last(0) == recorder.last(1) == Cancelled("deadline")
    assert recorder.last(3) == Cancelled("deadline"), "time before its submission counts"
    # One token of the prefill, then one per second; the round that ends at the deadline accepts nothing.
    assert recorder.tokens(0) == scripted(prompt_of(0), 10)
    assert recorder.tokens(1) == []
    assert recorder.tokens(2) == scripted(prompt_of(2), 3)


def test_shutdown_tells_everybody_and_gives_everything_back(loaded: LoadedModel, recorder: EventRecorder) -> None:
    running = threading.Event()

    def hook(unit: str, sequences: list[int]) -> None:
        if len(sequences) == 2:
            running.set()

    program = FakeProgram(lanes=2, hook=hook)
    service = make_service(loaded, program)
    for number in range(5):
        recorder.submit(service, ask(prompt_of(number), 4000), number)
    service.start()
    assert running.wait(30.0)
    service.stop(30.0)
    assert [recorder.last(number) for number in range(5)] == [Cancelled("shutdown")] * 5
    assert recorder.tokens(0) and not recorder.tokens(4)
    assert_idle(service, program)
    assert service.health == EngineHealth("stopped")
    with pytest.raises(EngineFailedError, match="stopped"):
        recorder.submit(service, ask(prompt_of(6)))
    service.stop(1.0)


def test_the_interpreter_switches_fast_only_while_the_engine_runs(loaded: LoadedModel) -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.003)
    try:
        with started(make_service(loaded, FakeProgram())):
            assert sys.getswitchinterval() == pytest.approx(1e-4)
        assert sys.getswitchinterval() == pytest.approx(0.003)
    finally:
        sys.setswitchinterval(before)


def test_a_service_that_was_never_started_stops_too(loaded: LoadedModel, recorder: EventRecorder) -> None:
    service = make_service(loaded, FakeProgram())
    recorder.submit(service, ask(prompt_of(0)), 0)
    service.stop(1.0)
    assert recorder.last(0) == Cancelled("shutdown")
    assert service.health == EngineHealth("stopped")


@pytest.mark.parametrize("broken", ["prefill", "finish_prefill", "decode", "commit"])
def test_an_exception_in_the_worker_fails_every_request_and_the_engine(
    loaded: LoadedModel, recorder: EventRecorder, broken: str
) -> None:
    def hook(unit: str, sequences: list[int]) -> None:
        if unit == broken and 2 in sequences:
            raise MemoryError("no more")

    program = FakeProgram(lanes=2, hook=hook)
    service = make_service(loaded, program)
    for number in range(4):
        recorder.submit(service, ask(prompt_of(number, 150), 50), number)
    with started(service):
        for number in range(4):
            assert recorder.last(number) == Failed("the engine has failed: MemoryError: no more")
        assert service.health == EngineHealth("failed", "MemoryError: no more")
        with pytest.raises(EngineFailedError, match="MemoryError: no more"):
            recorder.submit(service, ask(prompt_of(9)))
    assert_idle(service, program)
    assert service.health.state == "failed", "stopping does not hide a failure"


def test_a_hand_over_that_raises_is_an_engine_failure(loaded: LoadedModel) -> None:
    told: list[EngineEvent] = []

    def hand_over(batch: list[tuple[int, list[EngineEvent]]]) -> None:
        told.extend(event for _, events in batch for event in events)
        raise RuntimeError("the loop is closed")

    program = FakeProgram()
    service = make_service(loaded, program, hand_over=hand_over)
    service.submit(ask(prompt_of(0)))
    with started(service):
        while service.health.state == "ready":
            time.sleep(0.001)
    assert service.health == EngineHealth("failed", "RuntimeError: the loop is closed")
    assert told[-1] == Failed("the engine has failed: RuntimeError: the loop is closed"), "it was tried all the same"
    assert_idle(service, program)


def test_a_far_deadline_keeps_nothing_of_an_ended_request(loaded: LoadedModel, recorder: EventRecorder) -> None:
    service = make_service(loaded, FakeProgram())
    with started(service):
        recorder.wait([recorder.submit(service, ask(prompt_of(0), timeout_s=1e6)) for _ in range(3)])
    gc.collect()
    # By type, not isinstance: some libraries' objects warn when they are asked.
    assert not [thing for thing in gc.get_objects() if type(thing) is Request and thing.deadline is not None], (
        service.health
    )


def test_a_row_that_can_pick_nothing_fails_alone(loaded: LoadedModel, recorder: EventRecorder) -> None:
    def script(prompt: list[int], index: int) -> int:
        return -1 if prompt == prompt_of(1) and index == 3 else scripted_token(prompt, index)

    program = FakeProgram(script=script)
    service = make_service(loaded, program)
    for number in range(3):
        recorder.submit(service, ask(prompt_of(number), 6), number)
    with started(service):
        recorder.wait(range(3))
        assert service.health.state == "ready"
        assert_idle(service, program)
    failed = recorder.last(1)
    assert isinstance(failed, Failed) and "finite" in failed.message and failed.code == "no_finite_logit"
    assert [recorder.tokens(number) for number in (0, 1, 2)] == [
        scripted(prompt_of(number), count) for number, count in ((0, 6), (1, 3), (2, 6))
    ]


def test_a_receiver_that_raises_loses_only_its_own_request(loaded: LoadedModel, recorder: EventRecorder) -> None:
    def broken(events: list[EngineEvent]) -> None:
        raise RuntimeError("the connection is closed")

    program = FakeProgram()
    service = make_service(loaded, program)
    service.submit(ask(prompt_of(0), 4000), broken)
    recorder.submit(service, ask(prompt_of(1), 30), 1)
    with started(service):
        assert isinstance(recorder.last(1), Finished)
        assert_idle(service, program)
    assert max(count for _, _, count in program.units) <= 8
    assert len(program.units) < 40, "the request went on without a listener"
