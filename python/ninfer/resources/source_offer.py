"""From where a prompt might go on, as the catalog believes; the program compares tokens before anybody relies on it."""

from __future__ import annotations

from dataclasses import dataclass

from ninfer.resources.checkpoint_kind import CheckpointKind


@dataclass(frozen=True)
class SourceOffer:
    """Exactly one of cell and shared is given. use: 'retain', 'consume' or 'continue', as Program.candidates takes it.

    A checkpoint may be offered twice with different uses, the wanted one first.
    """

    checkpoint: int
    use: str
    kind: CheckpointKind
    frontier: int
    """Tokens of the checkpoint; a model without recurrent layers may serve fewer."""
    owner: int
    cell: int | None = None
    shared: int | None = None
    extends: frozenset[int] = frozenset()
    """Owners of all shared prefixes with which the prompt begins."""

    @property
    def takes_owner(self) -> bool:
        return self.use != "retain"
