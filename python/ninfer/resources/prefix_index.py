"""Frontiers and digests of everything kept, in arrays, so that one prompt is compared with all of it at once."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ninfer.resources.catalog_entry import Digest
from ninfer.resources.program_view import PromptIdentity


class PrefixIndex:
    """A fixed number of rows; an empty one has frontier 0. Agreement is a guess: the program compares the tokens."""

    def __init__(self, rows: int) -> None:
        self._frontiers = np.zeros(rows, dtype=np.int64)
        self._digests = np.zeros((rows, 2), dtype=np.uint64)
        self._asked: tuple[PromptIdentity, int, list[int]] | None = None

    @property
    def rows(self) -> int:
        return len(self._frontiers)

    def set(self, row: int, frontier: int, digest: Digest) -> None:
        assert frontier > 0, frontier
        self._frontiers[row] = frontier
        self._digests[row] = digest
        self._asked = None

    def clear(self, row: int) -> None:
        self._frontiers[row] = 0
        self._asked = None

    def used_rows(self) -> list[int]:
        return [int(row) for row in np.flatnonzero(self._frontiers)]

    def matching(self, prompt: PromptIdentity, longest: int) -> list[int]:
        """Rows of at most `longest` tokens with which the prompt begins, the deepest first. Asked again for the same
        prompt while nothing has changed, the answer is there already."""
        if self._asked is None or self._asked[0] is not prompt or self._asked[1] != longest:
            self._asked = prompt, longest, self._find(prompt, longest)
        return self._asked[2]

    def _find(self, prompt: PromptIdentity, longest: int) -> list[int]:
        live = np.flatnonzero((self._frontiers > 0) & (self._frontiers <= longest))
        if not len(live):
            return []
        frontiers = self._frontiers[live]
        agreeing = live[prompt.matches(frontiers, self._digests[live])]
        deepest_first = np.argsort(-self._frontiers[agreeing], kind="stable")
        return [int(row) for row in agreeing[deepest_first]]


def digests_at(prompt: PromptIdentity, frontiers: Iterable[int]) -> list[tuple[int, Digest]]:
    """Pairs of frontier and digest, for frontiers of the prompt."""
    wanted = np.array(sorted(frontiers), dtype=np.int64)
    if not len(wanted):
        return []
    rows: NDArray[np.uint64] = prompt.digests(wanted)
    return [(int(at), (int(low), int(high))) for at, (low, high) in zip(wanted, rows, strict=True)]
