"""Who runs next, without a program: order, the one staged prefill, membership of decode rounds, states."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from ninfer.engine.request import ENDS, LEGAL_MOVES, Request, RequestState, move
from ninfer.engine.scheduler import Scheduler
from tests.fixtures.seed import SEED


def request(number: int) -> Request:
    nothing: Any = None  # the scheduler looks at neither plan, output nor prompt
    return Request(number, nothing, nothing, nothing, None, arrived=0.0)


def admit(scheduler: Scheduler) -> Request:
    head = scheduler.candidate()
    assert head is not None
    scheduler.stage(head, RequestState.PREFILLING)
    return head


def finish(scheduler: Scheduler, request: Request, state: RequestState = RequestState.FINISHED) -> None:
    scheduler.close(request)
    scheduler.end(request, state)


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
    finish(scheduler, requests[2])
    assert admit(scheduler) is requests[4]
    assert scheduler.decoding == [requests[0], requests[1], requests[3]]
    assert (scheduler.running, scheduler.queued) == (4, 1)


def test_a_request_keeps_its_lane_until_its_sequence_is_gone() -> None:
    scheduler, requests = filled(3, lanes=2)
    for _ in range(2):
        scheduler.start_decoding(admit(scheduler))
    scheduler.close(requests[0])
    assert (scheduler.decoding, scheduler.ending) == ([requests[1]], [requests[0]])
    assert scheduler.candidate() is None, "what it holds is not free yet"
    scheduler.end(requests[0], RequestState.CANCELLED)
    assert scheduler.candidate() is requests[2]


def test_a_request_whose_transaction_failed_has_its_old_place() -> None:
    scheduler, requests = filled(4)
    scheduler.stage(requests[2], RequestState.MATERIALIZING)
    assert scheduler.prefilling is None and scheduler.candidate() is None
    scheduler.put_back(requests[2])
    assert [scheduler.candidate(), *scheduler.behind_head()] == requests


def test_donors_are_those_that_did_not_overtake_this_head() -> None:
    scheduler, requests = filled(4)
    for number in (0, 2):
        scheduler.stage(requests[number], RequestState.PREFILLING)
        scheduler.start_decoding(requests[number])
    requests[2].overtook = requests[1]
    assert scheduler.donors(requests[1]) == [requests[0]]
    assert scheduler.donors(requests[3]) == [requests[0], requests[2]]


@pytest.mark.parametrize(("chunk", "while_decoding"), [(2048, 409), (320, 64), (100, 64), (64, 64), (16, 16)])
def test_prefill_units_are_shorter_while_answers_run(chunk: int, while_decoding: int) -> None:
    scheduler, requests = filled(2, chunk=chunk)
    assert scheduler.prefill_limit == chunk
    scheduler.start_decoding(admit(scheduler))
    assert scheduler.prefill_limit == while_decoding
    finish(scheduler, requests[0])
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
    assert ended == ENDS == {RequestState.FINISHED, RequestState.CANCELLED, RequestState.FAILED}
    assert LEGAL_MOVES.keys() == set(RequestState)


def test_random_steps_keep_every_request_in_one_place() -> None:
    """Against a naive model: a list of live requests in the order of submission, and the state of each."""
    print(f"NINFER_TEST_SEED={SEED}")
    dice = random.Random(SEED)
    scheduler = Scheduler(3, 256)
    live: list[Request] = []
    for number in range(5000):
        random_step(scheduler, live, number, dice)
        by_state = {state: [one for one in live if one.state is state] for state in RequestState}
        assert set(scheduler.decoding) == set(by_state[RequestState.DECODING])
        assert set(scheduler.ending) == set(by_state[RequestState.TERMINAL_PENDING])
        staged = by_state[RequestState.MATERIALIZING] + by_state[RequestState.PREFILLING]
        assert ([] if scheduler.staged is None else [scheduler.staged]) == staged
        assert scheduler.queued == len(by_state[RequestState.QUEUED])
        assert scheduler.running <= 3
        assert scheduler.idle == (not live)
        if (head := scheduler.candidate()) is not None:
            assert [head, *scheduler.behind_head()] == by_state[RequestState.QUEUED]


def random_step(scheduler: Scheduler, live: list[Request], number: int, dice: random.Random) -> None:
    action = dice.randrange(5)
    head = scheduler.candidate()
    if action == 0 and len(live) < 12:
        live.append(request(number))
        scheduler.enqueue(live[-1])
    elif action == 1 and head is not None:
        chosen = dice.choice([head, *scheduler.behind_head()])
        scheduler.stage(chosen, dice.choice([RequestState.MATERIALIZING, RequestState.PREFILLING]))
    elif action == 2 and scheduler.prefilling is not None:
        scheduler.start_decoding(scheduler.prefilling)
    elif action == 3 and scheduler.staged is not None and scheduler.prefilling is None:
        dice.choice([scheduler.put_back, scheduler.start_prefill])(scheduler.staged)
    elif action == 4 and live:
        chosen = dice.choice(live)
        if RequestState.TERMINAL_PENDING in LEGAL_MOVES[chosen.state]:
            scheduler.close(chosen)
        else:
            live.remove(chosen)
            scheduler.end(chosen, dice.choice(sorted(LEGAL_MOVES[chosen.state] & ENDS, key=lambda end: end.value)))
