"""Who runs next, without a program: order, the one staged prefill, membership of decode rounds, states."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from ninfer.engine.request import LEGAL_MOVES, Request, RequestState, move
from ninfer.engine.scheduler import Scheduler
from tests.fixtures.seed import SEED


def request(number: int) -> Request:
    nothing: Any = None  # the scheduler looks at neither plan nor output
    return Request(number, nothing, nothing, None, arrived=0.0)


def admit(scheduler: Scheduler) -> Request:
    head = scheduler.candidate()
    assert head is not None
    scheduler.stage(head)
    return head


def filled(count: int, lanes: int = 4, chunk: int = 512) -> tuple[Scheduler, list[Request]]:
    scheduler = Scheduler(lanes, chunk)
    requests = [request(number) for number in range(count)]
    for one in requests:
        scheduler.enqueue(one)
    return scheduler, requests


def test_requests_start_in_the_order_of_submission_one_prefill_at_a_time() -> None:
    scheduler, requests = filled(6)
    for number in range(4):
        assert admit(scheduler) is requests[number]
        assert scheduler.candidate() is None, "a second prefill while one is staged"
        scheduler.start_decoding(requests[number])
    assert scheduler.decoding == requests[:4]
    assert scheduler.candidate() is None, "no lane is left"
    scheduler.end(requests[2], RequestState.FINISHED)
    assert admit(scheduler) is requests[4]
    assert scheduler.decoding == [requests[0], requests[1], requests[3]]
    assert (scheduler.running, scheduler.queued) == (4, 1)


def test_nobody_overtakes_a_head_that_does_not_fit_and_it_is_tried_again_after_an_end() -> None:
    scheduler, requests = filled(4)
    for _ in range(2):
        scheduler.start_decoding(admit(scheduler))
    assert scheduler.candidate() is requests[2]
    scheduler.refuse()
    assert scheduler.candidate() is None, "nothing has changed"
    scheduler.end(requests[0], RequestState.CANCELLED)
    assert scheduler.candidate() is requests[2]


def test_a_refused_head_that_leaves_makes_room_for_the_next() -> None:
    scheduler, requests = filled(3)
    scheduler.start_decoding(admit(scheduler))
    scheduler.refuse()
    scheduler.end(requests[1], RequestState.CANCELLED)
    assert scheduler.candidate() is requests[2]


def test_a_head_that_an_idle_engine_refuses_is_a_bug() -> None:
    scheduler, _ = filled(1)
    with pytest.raises(AssertionError, match="for ever"):
        scheduler.refuse()


@pytest.mark.parametrize(("chunk", "while_decoding"), [(2048, 409), (320, 64), (100, 64), (64, 64), (16, 16)])
def test_prefill_units_are_shorter_while_answers_run(chunk: int, while_decoding: int) -> None:
    scheduler, requests = filled(2, chunk=chunk)
    assert scheduler.prefill_limit == chunk
    scheduler.start_decoding(admit(scheduler))
    assert scheduler.prefill_limit == while_decoding
    scheduler.end(requests[0], RequestState.FINISHED)
    assert scheduler.prefill_limit == chunk


@pytest.mark.parametrize(("start", "end"), list(itertools.product(RequestState, RequestState)))
def test_only_legal_moves_are_made(start: RequestState, end: RequestState) -> None:
    moved = request(1)
    moved.state = start
    if end in LEGAL_MOVES[start]:
        move(moved, end)
        assert moved.state is end
    else:
        with pytest.raises(AssertionError, match="request 1"):
            move(moved, end)
        assert moved.state is start


def test_ended_states_are_those_without_a_way_on() -> None:
    ended = {state for state, ways in LEGAL_MOVES.items() if not ways}
    assert ended == {RequestState.FINISHED, RequestState.CANCELLED, RequestState.FAILED}
    assert LEGAL_MOVES.keys() == set(RequestState)


def test_random_steps_keep_every_request_in_one_place() -> None:
    """Against a naive model: a list of (request, place) in the order of submission."""
    print(f"NINFER_TEST_SEED={SEED}")
    dice = random.Random(SEED)
    scheduler = Scheduler(3, 256)
    live: list[Request] = []
    for number in range(5000):
        action = dice.randrange(4)
        if action == 0 and len(live) < 12:
            live.append(request(number))
            scheduler.enqueue(live[-1])
        elif action == 1 and (head := scheduler.candidate()) is not None:
            assert head is next(one for one in live if one.state is RequestState.QUEUED)
            if dice.random() < 0.2 and scheduler.running > 0:
                scheduler.refuse()
            else:
                scheduler.stage(head)
        elif action == 2 and scheduler.staged is not None:
            scheduler.start_decoding(scheduler.staged)
        elif action == 3 and live:
            ended = live.pop(dice.randrange(len(live)))
            broken = RequestState.CANCELLED if dice.random() < 0.5 else RequestState.FAILED
            scheduler.end(ended, RequestState.FINISHED if ended.state is RequestState.DECODING else broken)
        by_state = {state: [one for one in live if one.state is state] for state in RequestState}
        assert scheduler.decoding == by_state[RequestState.DECODING]
        assert ([] if scheduler.staged is None else [scheduler.staged]) == by_state[RequestState.PREFILLING]
        assert scheduler.queued == len(by_state[RequestState.QUEUED])
        assert scheduler.running <= 3
        assert scheduler.idle == (not live)
