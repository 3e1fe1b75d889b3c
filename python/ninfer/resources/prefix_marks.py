"""How far everything kept agrees with a prompt, roughly: digests of each ledger at marks that are the same for all.

Used where no checkpoint lies at the end of what is shared: to explain what was not reused, and to find sources for
models without recurrent layers, which may start anywhere (D-9).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ninfer.resources.program_view import PromptIdentity

FIRST_STEP = 16
STEPS_PER_OCTAVE = 32
LONGEST = 1 << 22


def mark_schedule() -> NDArray[np.int64]:
    """Every 16 tokens up to 512, then 32 marks for each doubling: they lie at most 16 tokens or 3 % apart."""
    marks = list(range(FIRST_STEP, FIRST_STEP * STEPS_PER_OCTAVE, FIRST_STEP))
    octave = FIRST_STEP * STEPS_PER_OCTAVE
    while octave < LONGEST:
        marks.extend(range(octave, 2 * octave, octave // STEPS_PER_OCTAVE))
        octave *= 2
    return np.array(marks, dtype=np.int64)


class PrefixMarks:
    """One row per ledger. It agrees with a prompt up to some mark and nowhere beyond, since digests are chained."""

    def __init__(self, rows: int) -> None:
        self.schedule = mark_schedule()
        self._low = np.zeros((rows, len(self.schedule)), dtype=np.uint64)
        self._counts = np.zeros(rows, dtype=np.int64)

    def marks_up_to(self, tokens: int) -> NDArray[np.int64]:
        return self.schedule[: np.searchsorted(self.schedule, tokens, side="right")]

    def set(self, row: int, digests: NDArray[np.uint64]) -> None:
        """digests: uint64 [k, 2] at the first k marks."""
        self._low[row, : len(digests)] = digests[:, 0]
        self._counts[row] = len(digests)

    def trim(self, row: int, tokens: int) -> None:
        """Of the ledger only so many tokens are left."""
        self._counts[row] = min(self._counts[row], len(self.marks_up_to(tokens)))

    def copy(self, row: int, other: PrefixMarks, to: int) -> None:
        """The row becomes one of the other's."""
        other._low[to] = self._low[row]
        other._counts[to] = self._counts[row]

    def count_of(self, row: int) -> int:
        return int(self._counts[row])

    def clear(self, row: int) -> None:
        self._counts[row] = 0

    def agreement(self, prompt: PromptIdentity) -> NDArray[np.int64]:
        """int64 [rows]: the last mark up to which each ledger agrees with the prompt, in tokens; 0 for none."""
        marks = self.marks_up_to(prompt.size)
        if not len(marks):
            return np.zeros(len(self._counts), dtype=np.int64)
        wanted = prompt.digests(marks)[:, 0]
        # A search by halves in all rows at once: `low` marks agree, from `high` on none does.
        low = np.zeros(len(self._counts), dtype=np.int64)
        high = np.minimum(self._counts, len(marks)) + 1
        rows = np.arange(len(low))
        while np.any(undecided := high - low > 1):
            middle = (low + high) // 2
            at = np.maximum(middle - 1, 0)
            agrees = self._low[rows, at] == wanted[at]
            low = np.where(undecided & agrees, middle, low)
            high = np.where(undecided & ~agrees, middle, high)
        return np.where(low > 0, marks[np.maximum(low - 1, 0)], 0)
