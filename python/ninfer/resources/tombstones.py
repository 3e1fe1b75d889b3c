"""What was kept and had to go: for a while, only to say so."""

from __future__ import annotations

from ninfer.resources.catalog_entry import Digest
from ninfer.resources.prefix_index import PrefixIndex
from ninfer.resources.prefix_marks import PrefixMarks
from ninfer.resources.program_view import PromptIdentity

CAPACITY = 4096
MARKED = 256


class Tombstones:
    """A ring of (frontier, digest), the newest CAPACITY of them; and one of MARKED ledgers by their marks, for models
    without recurrent layers, where any beginning of what was kept would have served."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._index = PrefixIndex(capacity)
        self._frontiers = [0] * capacity
        self._next = 0
        self._marks = PrefixMarks(MARKED)
        self._next_marked = 0
        self._has_marks = False

    def add(self, frontier: int, digest: Digest) -> None:
        self._index.set(self._next, frontier, digest)
        self._frontiers[self._next] = frontier
        self._next = (self._next + 1) % len(self._frontiers)

    def add_marks(self, marks: PrefixMarks, row: int) -> None:
        marks.copy(row, self._marks, self._next_marked)
        self._has_marks = True
        self._next_marked = (self._next_marked + 1) % MARKED

    def deepest(self, prompt: PromptIdentity, longest: int) -> int:
        """Tokens of the deepest one with which the prompt begins; 0 for none."""
        rows = self._index.matching(prompt, longest)
        whole = self._frontiers[rows[0]] if rows else 0
        if not self._has_marks:
            return whole
        return max(whole, min(int(self._marks.agreement(prompt).max()), longest))
