"""Who may start before a head that does not fit: whoever provably makes it wait no longer (T9)."""

from __future__ import annotations

from ninfer import native
from ninfer.engine.loop_parts import LoopParts
from ninfer.engine.request import Request


class Backfill:
    """The proof: with the head's donors finished, the borrower still holding everything it was promised, and all
    unprotected cache released, the head's root plan fits. Donors are the running requests that did not overtake this
    head, so one borrower after another cannot make it starve. A proof holds at one revision."""

    def __init__(self, parts: LoopParts) -> None:
        self._parts = parts
        self._refused: set[int] = set()
        self._asked: tuple[Request, int] | None = None

    def borrower(self, head: Request) -> Request | None:
        """The first behind the head that may start now, as far as nobody knows better at this revision."""
        asked = (head, self._parts.program.resource_revision)
        if asked != self._asked:
            self._asked = asked
            self._refused.clear()
        for request in self._parts.scheduler.behind_head():
            if request.id in self._refused:
                continue
            if self._is_safe(head, request):
                return request
            self._refused.add(request.id)
        return None

    def refuse(self, request: Request) -> None:
        """It was proven harmless, but does not fit itself."""
        self._refused.add(request.id)

    def _is_safe(self, head: Request, borrower: Request) -> bool:
        donors = [one.open_sequence for one in self._parts.scheduler.donors(head)]
        manager = self._parts.manager
        protected = [] if manager is None else manager.protected_owners()
        proof = self._parts.program.prove_backfill(
            (head.plan.reserved_tokens, 0), (borrower.plan.reserved_tokens, 0), donors, protected
        )
        return not isinstance(proof, native.Refusal)
