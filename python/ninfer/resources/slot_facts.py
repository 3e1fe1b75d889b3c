"""One private cell as /slots shows it."""

from __future__ import annotations

from dataclasses import dataclass

from ninfer.resources.checkpoint_kind import CheckpointKind
from ninfer.resources.retention import RetentionClass


@dataclass(frozen=True)
class SlotFacts:
    """state: 'idle', 'claimed' or 'active'. Bytes count what several slots share in each of
    them, and of the pages those of the deepest checkpoint."""

    cell: int
    state: str
    session: str | None
    retention: RetentionClass
    tokens: int
    kinds: tuple[CheckpointKind, ...]
    device_bytes: int
    host_bytes: int


@dataclass(frozen=True)
class CatalogStatistics:
    """removed: counts by RemovalReason. short: counts by ReuseReason of what `divergence` reported."""

    private_capacity: int
    private_used: int
    private_active: int
    private_claimed: int
    shared_capacity: int
    shared_used: int
    checkpoints: int
    sessions: int
    edges: int
    removed: dict[str, int]
    short: dict[str, int]
    captures_without_room: int
