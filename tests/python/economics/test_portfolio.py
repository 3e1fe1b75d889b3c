"""Values of portfolios against the sums of the design, added up one by one."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ninfer.economics.portfolio import NewCheckpoint, Portfolio
from ninfer.economics.prefill_cost import PrefillCost
from ninfer.economics.transfer_cost import TransferCost
from tests.fixtures.seed import SEED


def naive_public(saving: list[float], demands: list[list[int]], credited: list[int]) -> float:
    value = 0.0
    for matching in demands:
        value += max((saving[one] for one in matching), default=0.0)
    for one in credited:
        value += saving[one]
    return value


def naive_private(before: list[float], after: list[float], owner: list[int], weight: list[float]) -> float:
    loss = 0.0
    for number, times in enumerate(weight):
        lost = [max(0.0, before[p] - after[p]) for p in range(len(owner)) if owner[p] == number]
        loss += times * max(lost, default=0.0)
    return loss


@pytest.mark.parametrize("case", range(50))
def test_values_are_the_sums_of_the_design(case: int) -> None:
    print(f"NINFER_TEST_SEED={SEED}")
    dice = random.Random(SEED * 50 + case)
    # The first case: nothing is kept.
    n, m = (0, 0) if case == 0 else (dice.randint(1, 8), dice.randint(1, 4))
    owner = [dice.randrange(m) for _ in range(n)]
    weight = [dice.choice([0.0, 1.0, 4.0, 16.0]) for _ in range(m)]
    rebuild = [dice.uniform(0, 100) for _ in range(n)]
    demands = [sorted(dice.sample(range(n), dice.randint(0, n))) for _ in range(dice.randint(0, 5))]
    credited = sorted(dice.sample(range(n), dice.randint(0, n)))
    rows = [np.array(one, dtype=np.int64) for one in (*demands, credited)]
    portfolio = Portfolio(
        np.array(owner, dtype=np.int64), np.array(weight), np.array(rebuild), tuple(rows[:-1]), rows[-1]
    )
    recoveries = [[dice.choice([dice.uniform(0, 150), np.inf]) for _ in range(n)] for _ in range(3)]
    savings = [[max(0.0, a - b) for a, b in zip(rebuild, one, strict=True)] for one in recoveries]
    found = portfolio.saving(np.array(recoveries))
    assert found.tolist() == savings
    before, *targets = savings
    public = [naive_public(one, demands, credited) for one in savings]
    private = [naive_private(before, one, owner, weight) for one in targets]
    assert portfolio.public_value(found) == pytest.approx(public)
    assert portfolio.private_loss(found[0], found[1:]) == pytest.approx(private)
    lost = [max(0.0, public[0] - now) + loss for now, loss in zip(public[1:], private, strict=True)]
    assert portfolio.future_loss(found[0], found[1:]) == pytest.approx(lost)
    new = NewCheckpoint(dice.uniform(0, 100), frozenset(dice.sample(range(5), 2)), dice.random() < 0.5)
    with_new = []
    for saving in targets:
        wanted = [[*one, n] if number in new.demands else one for number, one in enumerate(demands)]
        with_new.append(naive_public([*saving, new.saving], wanted, [*credited, *([n] if new.credited else [])]))
    gain = [now - public[0] - loss - 7.0 for now, loss in zip(with_new, private, strict=True)]
    assert portfolio.net_gain(found[0], found[1:], new, np.array([7.0, 7.0])) == pytest.approx(gain)


def test_what_is_not_finite_is_no_gain() -> None:
    none = np.zeros(0, dtype=np.int64)
    portfolio = Portfolio(np.array([0]), np.array([1.0]), np.array([5.0]), (), none)
    wasted = np.array([np.inf, np.nan])
    gain = portfolio.net_gain(np.array([0.0]), np.array([[5.0], [5.0]]), NewCheckpoint(1e9, frozenset(), True), wasted)
    assert gain.tolist() == [-np.inf, -np.inf]


def test_nested_prefixes_count_once_for_a_request() -> None:
    """Of tools, instructions and the full prompt the best; each gone alone costs what it was better by."""
    nested = np.array([0, 1, 2])
    portfolio = Portfolio(np.array([0, 1, 2]), np.zeros(3), np.array([10.0, 20.0, 50.0]), (nested, nested))
    assert portfolio.public_value(np.array([10.0, 20.0, 50.0])) == 100.0
    assert portfolio.future_loss(np.array([10.0, 20.0, 50.0]), np.array([0.0, 20.0, 50.0])) == 0.0
    assert portfolio.future_loss(np.array([10.0, 20.0, 50.0]), np.array([10.0, 20.0, 0.0])) == 60.0


@pytest.mark.parametrize(
    ("page_ms", "expected"),
    [
        (1, {"A goes": 208, "B goes": 26, "C goes": 41.4, "A to Host": 34, "B to Host": 4, "C to Host": 8}),
        (10, {"A goes": 208, "B goes": 26, "C goes": 41.4, "A to Host": 228, "B to Host": 40, "C to Host": 61.4}),
    ],
)
def test_the_example_of_the_design_page(page_ms: float, expected: dict[str, float]) -> None:
    """docs/design/planner_and_value.md: 2 pages are moved, or an owner goes."""
    copy = TransferCost(0, page_ms * 1e6, 0)
    prefill = PrefillCost(1e6, 1e5, 0)
    rebuild = prefill.of([0, 0, 0], [120, 250, 128])
    weight = np.array([16.0, 1.0, 0.0])
    demands = tuple(np.array([2]) for _ in range(3))
    portfolio = Portfolio(np.arange(3), weight, rebuild, demands)
    before = portfolio.saving(np.zeros(3))
    found = {}
    for owner, name in enumerate("ABC"):
        for what, recovery, now in (("goes", rebuild[owner], 0.0), ("to Host", copy.of(2, 0), copy.of(2, 0))):
            after = portfolio.saving(np.where(np.arange(3) == owner, recovery, 0.0))
            found[f"{name} {what}"] = float(now + portfolio.future_loss(before, after)) / 1e6
    assert found == pytest.approx(expected)
