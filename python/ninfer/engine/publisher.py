"""Tells clients what happened: one call per model unit, after everything that is told has been committed."""

from __future__ import annotations

import logging

from ninfer.engine.events import EngineEvent, HandOver
from ninfer.engine.request import Request

_LOG = logging.getLogger(__name__)


class Publisher:
    """Collects events with `add`, tells them with `flush`.

    hand_over takes everything at once; without it, each request's own `deliver` is called. Their exceptions come out of
    `flush` only from hand_over; a request whose own receiver raises is returned, for nobody listens to it any more.
    """

    def __init__(self, hand_over: HandOver | None) -> None:
        self._hand_over = hand_over
        self._batch: list[tuple[Request, list[EngineEvent]]] = []

    def add(self, request: Request, events: list[EngineEvent]) -> None:
        self._batch.append((request, events))

    def flush(self) -> list[Request]:
        """Tells what was added, in that order; returns the requests whose receiver raised."""
        if not self._batch:
            return []
        batch, self._batch = self._batch, []
        if self._hand_over is not None:
            self._hand_over([(request.id, events) for request, events in batch])
            return []
        return [request for request, events in batch if not _delivered(request, events)]


def _delivered(request: Request, events: list[EngineEvent]) -> bool:
    assert request.deliver is not None, "submission makes sure that somebody listens"
    try:
        request.deliver(events)
    except Exception:
        _LOG.exception("the receiver of request %d failed", request.id)
        return False
    return True
