"""What stays of a continuation when newer checkpoints have come (D-24, C10, C11)."""

from __future__ import annotations

import pytest

from ninfer.resources.anchor_retention import endpoint_becomes_anchor, rearranged
from ninfer.resources.catalog_entry import CatalogEntry
from ninfer.resources.checkpoint_kind import CheckpointKind
from tests.python.resources.played_engine import ANCHOR, CLOSURE, ENDPOINT, REPLAY


def entries(*frontiers_and_kinds: tuple[int, CheckpointKind]) -> list[CatalogEntry]:
    """Each checkpoint is named by its place in the list."""
    return [
        CatalogEntry(number, kind, frontier, (frontier, 0), number)
        for number, (frontier, kind) in enumerate(frontiers_and_kinds)
    ]


def test_one_of_each_role_stays() -> None:
    change = rearranged(entries((10, CLOSURE), (20, REPLAY), (30, ENDPOINT)), 8)
    assert not change.to_anchors and not change.to_delete


def test_what_loses_its_role_becomes_an_anchor() -> None:
    change = rearranged(
        entries((10, CLOSURE), (20, REPLAY), (30, ENDPOINT), (40, CLOSURE), (50, REPLAY), (60, ENDPOINT)), 8
    )
    assert change.to_anchors == {0, 1, 2}
    assert not change.to_delete


def test_rounds_of_the_open_turn_go() -> None:
    change = rearranged(entries((10, CLOSURE), (20, REPLAY), (40, REPLAY), (60, REPLAY), (70, ENDPOINT)), 8)
    assert change.to_delete == {1, 2}
    assert not change.to_anchors


def test_the_round_from_which_the_turn_will_be_another_stays() -> None:
    change = rearranged(entries((10, CLOSURE), (20, REPLAY), (40, REPLAY), (60, REPLAY), (70, ENDPOINT)), 8, 40)
    assert (change.to_delete, change.to_anchors) == ({1}, {2})


def test_the_shallowest_automatic_anchor_is_replaced() -> None:
    change = rearranged(entries((10, ANCHOR), (20, ANCHOR), (30, ANCHOR), (40, ENDPOINT)), 2)
    assert change.to_delete == {0}


def test_an_endpoint_replaces_the_anchor_whose_loss_costs_least() -> None:
    kept = entries((1000, ANCHOR), (1010, ANCHOR), (3000, ENDPOINT), (5000, ENDPOINT))
    assert rearranged(kept, 2).to_delete == {1}, "falling back from 1010 costs 10 tokens, from 1000 a thousand"


def test_an_endpoint_that_saves_least_is_not_kept_itself() -> None:
    kept = entries((1000, ANCHOR), (2000, ANCHOR), (2500, ENDPOINT), (5000, ENDPOINT))
    change = rearranged(kept, 2)
    assert change.to_delete == {2} and not change.to_anchors


def test_twins_go() -> None:
    change = rearranged(entries((10, ANCHOR), (10, CLOSURE), (20, ANCHOR), (20, ANCHOR), (30, ENDPOINT)), 8)
    assert change.to_delete == {0, 3}


@pytest.mark.parametrize("most", [0, 1])
def test_a_broken_off_prefill_is_kept_whatever_the_maximum(most: int) -> None:
    assert rearranged(entries((10, ANCHOR)), most).to_delete == frozenset()
    assert rearranged(entries((10, ANCHOR), (20, ANCHOR)), most).to_delete == {0}


def test_endpoint_gain() -> None:
    kept = entries((500, ANCHOR), (1524, ENDPOINT))
    assert endpoint_becomes_anchor(kept, kept[-1])
    short = entries((501, ANCHOR), (1524, ENDPOINT))
    assert not endpoint_becomes_anchor(short, short[-1])
    assert endpoint_becomes_anchor(entries((1024, ENDPOINT)), entries((1024, ENDPOINT))[-1])
