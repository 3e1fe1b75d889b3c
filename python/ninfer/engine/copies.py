"""Moves bytes between the tiers, a little at every boundary, and only while there is something to move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ninfer import native


@dataclass(frozen=True)
class CopyBudget:
    """Bytes that one boundary moves: while answers run, which wait meanwhile, and while none does."""

    decoding_bytes: int = 8 << 20
    alone_bytes: int = 64 << 20


class Copies:
    """`expect` after whatever may leave a copy on its way, or memory that waits for one; then `poll` looks until there
    is none any more. Without that a poll costs one comparison."""

    def __init__(self, program: native.Program, budget: CopyBudget, on_lost: Callable[[list[int]], None]) -> None:
        """on_lost: told the checkpoints that went because their image could not be copied."""
        self._program = program
        self._budget = budget
        self._on_lost = on_lost
        self.expected = False

    def expect(self) -> None:
        self.expected = True

    def poll(self, rows_decode: bool) -> None:
        if not self.expected:
            return
        budget = self._budget.decoding_bytes if rows_decode else self._budget.alone_bytes
        progress = self._program.poll_copies(budget)
        if progress.removed:
            self._on_lost(progress.removed)
        if progress.open == 0 and progress.draining == 0:
            # Those of an open transaction are not among them, nor is memory that somebody still reads.
            statistics = self._program.statistics()
            self.expected = statistics.copies_open > 0 or statistics.condemned > 0
