"""Ends requests: first everything they hold is finished or discarded, then their last events are told."""

from __future__ import annotations

from ninfer.engine.events import Cancelled
from ninfer.engine.loop_parts import LoopParts
from ninfer.engine.request import Ending, Request, RequestState
from ninfer.engine.sequence_release import SequenceRelease
from ninfer.resources.checkpoint_kind import CheckpointKind


def cancelled(reason: str, *, keep: bool = True) -> Ending:
    """What a broken-off prefill has computed is kept, so that the same request can go on from there (C11)."""
    return Ending(RequestState.CANCELLED, [Cancelled(reason)], CheckpointKind.LONG_ANCHOR if keep else None)


class Terminals:
    """Life of an end: `end`; if the program cannot let the sequence go (a transaction is open, or a copy still reads or
    writes it), the request is TERMINAL_PENDING and keeps everything; `retry` at each boundary, until it is told."""

    def __init__(self, parts: LoopParts, release: SequenceRelease) -> None:
        self._parts = parts
        self._release = release

    def end(self, request: Request, ending: Ending) -> None:
        """The request computes no more. Its transaction, if it had one, has ended."""
        self._parts.deadlines.drop(request)
        if request.sequence is None:
            self._tell(request, ending)
            return
        self._parts.scheduler.close(request)
        request.ending = ending
        self._conclude(request, ending)

    def retry(self) -> None:
        if not self._parts.scheduler.ending:
            return
        for request in list(self._parts.scheduler.ending):
            assert request.ending is not None, request.id
            self._conclude(request, request.ending)

    def _conclude(self, request: Request, ending: Ending) -> None:
        if not self._release.release(request, ending.keep):
            return
        request.sequence = None
        self._parts.transition_ended()
        self._tell(request, ending)

    def _tell(self, request: Request, ending: Ending) -> None:
        self._parts.scheduler.end(request, ending.state)
        self._parts.intake.forget(request)
        self._parts.publisher.add(request, ending.events)
