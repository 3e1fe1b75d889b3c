"""Starts requests: the head of the queue, or whoever may provably overtake it."""

from __future__ import annotations

from ninfer.engine.backfill import Backfill
from ninfer.engine.loop_parts import LoopParts
from ninfer.engine.openers import Opener
from ninfer.engine.request import Request


class Admission:
    """At most one request per boundary, and none while another prompt is staged or a lane is missing.

    A head that was refused is tried again once the program's revision has moved, which every end and every change of
    memory does, and once the copies have ended, which need not move it.
    """

    def __init__(self, parts: LoopParts, opener: Opener, backfill: Backfill) -> None:
        self._parts = parts
        self._opener = opener
        self._backfill = backfill
        self._blocked: tuple[Request, int, bool] | None = None
        self._waiting: Request | None = None
        self.backfilled = 0

    def admit(self) -> None:
        head = self._parts.scheduler.candidate()
        if head is None or (head is self._waiting and self._parts.statistics.copies_open > 0):
            return
        if self._blocked != self._attempt(head):
            blocked = self._opener.open(head)
            self._waiting = head if blocked is not None and blocked.passes else None
            if blocked is None or blocked.passes:
                return
            assert self._parts.scheduler.running > 0 or self._parts.copies.expected, (
                f"a head that does not fit an idle engine would wait for ever: {blocked.reason}"
            )
            self._blocked = self._attempt(head)
        self._let_overtake(head)

    def _attempt(self, head: Request) -> tuple[Request, int, bool]:
        """What has to change before the head is worth another plan."""
        return head, self._parts.program.resource_revision, self._parts.copies.expected

    def _let_overtake(self, head: Request) -> None:
        loan = self._backfill.borrower(head)
        if loan is None:
            return
        blocked = self._opener.open(loan.borrower, loan)
        if blocked is None:
            loan.borrower.overtook = head
            self.backfilled += 1
        elif not blocked.passes:
            self._backfill.refuse(loan.borrower)
