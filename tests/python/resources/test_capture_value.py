"""Which of a continuation's own checkpoints gives way to a more valuable one."""

from __future__ import annotations

from ninfer.resources.capture_value import gives_way
from ninfer.resources.catalog_entry import CatalogEntry
from ninfer.resources.checkpoint_kind import CheckpointKind

ANCHOR, CLOSURE = CheckpointKind.LONG_ANCHOR, CheckpointKind.TURN_CLOSURE
REPLAY, ENDPOINT = CheckpointKind.RESPONSE_REPLAY, CheckpointKind.SESSION_ENDPOINT


def entries(*kinds: tuple[int, CheckpointKind]) -> list[CatalogEntry]:
    return [CatalogEntry(at, kind, at, (at, 0), at) for at, kind in kinds]


def order(found: list[CatalogEntry], kind: CheckpointKind) -> list[int]:
    return [entry.frontier for entry in gives_way(found, kind)]


def test_the_anchor_goes_first_whose_loss_costs_least() -> None:
    found = entries((100, ANCHOR), (150, ANCHOR), (400, ANCHOR), (410, CLOSURE), (420, REPLAY))
    assert order(found, CLOSURE) == [150, 100, 400], "50 tokens, then 100, then 400 when nothing is left below"


def test_only_what_is_worth_less_goes() -> None:
    found = entries((100, ANCHOR), (410, CLOSURE), (420, REPLAY), (430, ENDPOINT))
    assert order(found, ANCHOR) == []
    assert order(found, CheckpointKind.SHARED_STABLE_PREFIX) == [100]
    assert order(found, REPLAY) == [100, 410]
    assert order(found, ENDPOINT) == [100, 410, 420]


def test_what_waits_to_be_deleted_is_no_place_to_gain() -> None:
    found = entries((100, ANCHOR), (200, ANCHOR))
    found[0].doomed = True
    assert order(found, ENDPOINT) == [200]
