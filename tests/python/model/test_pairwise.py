"""Every two values of different factors meet, in far fewer rows than the product."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

from tests.fixtures.pairwise import pairwise_rows

FACTORS: dict[str, list[Any]] = {
    "a": [1, 2, 4],
    "b": ["x", "y"],
    "c": [(1, 2), (3,)],
    "d": [0, 1, 2, 3],
    "e": [True, False],
    "f": [5],
}


def test_every_pair_of_values_is_in_some_row() -> None:
    rows = pairwise_rows(FACTORS)
    for left, right in combinations(FACTORS, 2):
        for one, other in product(FACTORS[left], FACTORS[right]):
            assert any(row[left] == one and row[right] == other for row in rows), (left, one, right, other)
    assert all(set(row) == set(FACTORS) for row in rows)


def test_rows_are_few_and_the_same_each_time() -> None:
    assert 12 <= len(pairwise_rows(FACTORS)) <= 18  # 12 is the least: 3 × 4 pairs of (a, d)
    assert pairwise_rows(FACTORS) == pairwise_rows(FACTORS)


def test_one_factor_gives_each_value_once() -> None:
    assert pairwise_rows({"only": [3, 1]}) == [{"only": 3}, {"only": 1}]
