"""How much the catalog may keep. All storage is made once, of these sizes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ContextCacheOptions:
    """Logical capacities; bytes are the program's to limit."""

    enabled: bool = True
    max_private_continuations: int = 256
    max_shared_prefixes: int = 256
    max_long_anchors_per_continuation: int = 8
    auto_long_anchors: int = 8
    """At how many of the last message boundaries an anchor is proposed."""
    auto_prefix_grid: bool = False
    endpoint_anchors: bool = True

    def __post_init__(self) -> None:
        assert self.max_private_continuations >= 1, self.max_private_continuations
        assert self.max_shared_prefixes >= 0, self.max_shared_prefixes
        assert self.max_long_anchors_per_continuation >= 0, self.max_long_anchors_per_continuation
        assert self.auto_long_anchors >= 0, self.auto_long_anchors
