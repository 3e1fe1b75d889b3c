"""Marks tell how far ledgers agree with a prompt, at most 16 tokens or 3 % too little."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ninfer.resources.prefix_marks import LONGEST, PrefixMarks, mark_schedule
from tests.fixtures.fake_contexts import FakePrompt, digests_of
from tests.fixtures.seed import SEED


def test_the_schedule_is_dense_enough() -> None:
    schedule = mark_schedule()
    gaps = np.diff(schedule, prepend=0)
    assert np.all(gaps > 0)
    assert np.all((gaps <= 16) | (gaps <= 0.032 * schedule))
    assert schedule[-1] > 0.96 * LONGEST
    assert len(schedule) < 500


@pytest.mark.parametrize("seed", [SEED])
def test_agreement_is_the_last_common_mark(seed: int) -> None:
    random_numbers = random.Random(seed)
    marks = PrefixMarks(40)
    prompt = FakePrompt(tuple(random_numbers.randrange(9) for _ in range(700)))
    expected = []
    for cell in range(40):
        shared = random_numbers.choice([0, 1, 15, 16, 17, 31, 32, 512, 543, 544, 700, random_numbers.randrange(700)])
        ledger = prompt.tokens[:shared] + tuple(99 for _ in range(random_numbers.randrange(600)))
        frontiers = marks.marks_up_to(len(ledger))
        marks.set(cell, digests_of("", ledger, frontiers.tolist()))
        expected.append(max((int(at) for at in marks.schedule if at <= shared), default=0))
    assert marks.agreement(prompt).tolist() == expected
    for tokens in (600, 100, 0):
        marks.trim(7, tokens)
        assert marks.agreement(prompt)[7] <= min(expected[7], tokens)
    marks.copy(3, other := PrefixMarks(2), 1)
    assert other.agreement(prompt).tolist() == [0, expected[3]]
    marks.clear(5)
    assert marks.agreement(prompt)[5] == 0
    assert not np.any(marks.agreement(FakePrompt(prompt.tokens[:15])))
