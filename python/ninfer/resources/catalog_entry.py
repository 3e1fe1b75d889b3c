"""One checkpoint as the catalog knows it: a name, a place in a conversation, and what identifies its tokens."""

from __future__ import annotations

from dataclasses import dataclass

from ninfer.resources.checkpoint_kind import CheckpointKind

Digest = tuple[int, int]
"""Low and high half."""


@dataclass(slots=True)
class CatalogEntry:
    """kind: what it is for now; a superseded endpoint is an anchor although the program still calls it an endpoint.

    was_endpoint: of an anchor, which is then replaced by another rule (anchor_retention.py). doomed: waits to be
    deleted, serves nobody. canonical: of an endpoint whose answer's text is spelled in other tokens when it comes back
    as history, how many of its tokens come back; None if all do (D-18).
    """

    checkpoint: int
    kind: CheckpointKind
    frontier: int
    digest: Digest
    row: int
    was_endpoint: bool = False
    canonical: int | None = None

    def is_respelled_at(self, token: int) -> bool:
        """Whether a prompt may part here though its client has changed nothing."""
        return self.canonical is not None and self.canonical <= token < self.frontier

    doomed: bool = False
