"""Whether the queue's order is kept."""

from __future__ import annotations

from ninfer.engine.request import Request, RequestState
from tests.fixtures.stepped_engine import ComparedEngine

# Boundaries in which a head may still wait though nobody is left for whom it has to: copies of an end, a prefill.
MOST_IDLE_WAITS = 200
# The same while nothing is prefilled or copied: an end comes after the admissions of its boundary, and a few to spare.
MOST_QUIET_WAITS = 5


class OrderWatch:
    """Looks after each boundary whether anybody was overtaken without right, or waits for nothing."""

    def __init__(self, engine: ComparedEngine) -> None:
        self._parts = engine.warm.parts
        self._head: Request | None = None
        self._donors: set[int] = set()
        self._waits = 0
        self._quiet_waits = 0
        self.overtaken = 0

    def look(self) -> None:
        live = self._parts.intake.live()
        queued = [request for request in live if request.state is RequestState.QUEUED]
        self._check_order(queued, live)
        self._check_head(queued[0] if queued else None, {request.id for request in live})

    def _check_order(self, queued: list[Request], live: list[Request]) -> None:
        for request in live:
            waits = any(one.id < request.id for one in queued)
            if request.state is not RequestState.QUEUED and waits and request.overtook is None:
                # What was sent back by an aborted transaction may find others before it.
                assert any(one.id < request.id and one.sources_lost for one in queued), (request, queued)
            self.overtaken += request.state is not RequestState.QUEUED and request.overtook is not None

    def _check_head(self, head: Request | None, live: set[int]) -> None:
        if head is not self._head:
            scheduler = self._parts.scheduler
            running = [*scheduler.decoding, *scheduler.ending, *([scheduler.staged] if scheduler.staged else [])]
            self._head, self._waits, self._quiet_waits = head, 0, 0
            self._donors = {request.id for request in running if head is None or request.overtook is not head}
        elif head is not None and not self._donors & live:
            self._waits += 1
            self._quiet_waits = self._quiet_waits + 1 if self._is_quiet() else 0
            waits = self._waits <= MOST_IDLE_WAITS and self._quiet_waits <= MOST_QUIET_WAITS
            assert waits, f"request {head.id} waits for nobody, or for who overtook it"

    def _is_quiet(self) -> bool:
        """Whether only rows are decoded, so that nothing but them can be in the head's way."""
        statistics = self._parts.program.statistics()
        copying = statistics.copies_open + statistics.copies_draining > 0
        return not copying and self._parts.scheduler.staged is None and not self._parts.scheduler.ending
