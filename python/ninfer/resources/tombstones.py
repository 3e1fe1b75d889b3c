"""What was kept and had to go: for a while, only to say so."""

from __future__ import annotations

from ninfer.resources.catalog_entry import Digest
from ninfer.resources.prefix_index import PrefixIndex
from ninfer.resources.program_view import PromptIdentity

CAPACITY = 4096


class Tombstones:
    """A ring of (frontier, digest): the newest CAPACITY of them."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._index = PrefixIndex(capacity)
        self._frontiers = [0] * capacity
        self._next = 0

    def add(self, frontier: int, digest: Digest) -> None:
        self._index.set(self._next, frontier, digest)
        self._frontiers[self._next] = frontier
        self._next = (self._next + 1) % len(self._frontiers)

    def deepest(self, prompt: PromptIdentity, longest: int) -> int:
        """Tokens of the deepest one with which the prompt begins; 0 for none."""
        rows = self._index.matching(prompt, longest)
        return self._frontiers[rows[0]] if rows else 0
