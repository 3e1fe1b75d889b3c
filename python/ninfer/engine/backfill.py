"""Who may start before a head that does not fit: whoever provably makes it wait no longer (T9)."""

from __future__ import annotations

from ninfer.engine.loan import Loan
from ninfer.engine.loop_parts import LoopParts
from ninfer.engine.request import Request


class Backfill:
    """Asks for one after the other whether a loan is safe (loan.py). Donors are the running requests that did not
    overtake this head, so one borrower after another cannot make it starve."""

    def __init__(self, parts: LoopParts) -> None:
        self._parts = parts
        self._refused: set[int] = set()
        self._asked: tuple[Request, int] | None = None

    def borrower(self, head: Request) -> Loan | None:
        """Of the first behind the head that may start now, as far as nobody knows better at this revision."""
        asked = (head, self._parts.program.resource_revision)
        if asked != self._asked:
            self._asked = asked
            self._refused.clear()
        for request in self._parts.scheduler.behind_head():
            if request.id in self._refused:
                continue
            loan = Loan(self._parts, head, request)
            if loan.allows_root():
                return loan
            self._refused.add(request.id)
        return None

    def refuse(self, request: Request) -> None:
        """It was proven harmless, but does not fit itself."""
        self._refused.add(request.id)
