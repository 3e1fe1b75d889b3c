"""The one open transaction, and the request whose sequence it makes."""

from __future__ import annotations

from ninfer import native
from ninfer.engine.loop_parts import LoopParts
from ninfer.engine.request import Request, RequestState
from ninfer.engine.terminals import Terminals, cancelled

# While answers run, they wait for no more than one phase beyond this.
_SLICE_S = 0.001


class Materialization:
    """Life of one:
    1. `start` uses the plan up; if nothing has to be copied it is over with that, else nothing has happened yet;
    2. `advance` at each boundary, phase by phase until a copy has to end first; it may be cancelled between boundaries;
    3. committed: the request has its sequence and begins its prompt, or ends if it was cancelled meanwhile;
    4. or aborted: the request was cancelled, or it goes back to its place in the queue, because a copy has failed.
    """

    def __init__(self, parts: LoopParts, terminals: Terminals) -> None:
        self._parts = parts
        self._terminals = terminals
        self.request: Request | None = None
        self.aborted = 0

    def start(self, request: Request, plan: native.ContextPlan) -> native.Refusal | None:
        """The request has its claim, and its report says from where it starts. A refusal has changed nothing."""
        protected = self._parts.catalog.protected_owners(request.claim)
        result = self._parts.program.start_transaction(plan, protected)
        if isinstance(result, native.Refusal):
            return result
        request.admitted = self._parts.clock()
        self._parts.scheduler.stage(request, RequestState.MATERIALIZING)
        self._parts.copies.expect()
        self.request = request
        if result is not None:
            self._end(request, result)
        return None

    def advance(self) -> None:
        program, decoding = self._parts.program, bool(self._parts.scheduler.decoding)
        until = self._parts.clock() + _SLICE_S
        while self.request is not None:
            result = native.must(program.advance_transaction())
            if result is not None:
                self._end(self.request, result)
            elif program.transaction_waits or (decoding and self._parts.clock() >= until):
                # Also between two rounds, when there is none at this moment.
                self._parts.copies.expect()
                return

    def cancel(self, request: Request, reason: str) -> None:
        """Takes effect with the next phase; a committed one is discarded."""
        assert self.request is request, request.id
        if request.broken is None:
            request.broken = reason
            self._parts.deadlines.drop(request)
            self._parts.program.cancel_transaction()

    def _end(self, request: Request, result: native.ResourceResult) -> None:
        self.request = None
        self._parts.copies.expect()
        if result.end == "committed":
            self._begin(request, result)
        else:
            self._abort(request, result)
        self._parts.transition_ended()

    def _begin(self, request: Request, result: native.ResourceResult) -> None:
        assert request.claim is not None and result.sequence is not None, request.id
        summary = native.must(self._parts.program.sequence(result.sequence))
        self._parts.catalog.adopt_admission(request.claim, result, summary.owner, request.capture_facts)
        request.sequence = result.sequence
        request.prefilled = request.base
        assert summary.computed == request.base, (summary.computed, request.base)
        native.must(self._parts.program.append_prompt(result.sequence, request.prompt))
        self._parts.scheduler.start_prefill(request)
        if request.broken is not None:
            self._terminals.end(request, cancelled(request.broken))

    def _abort(self, request: Request, result: native.ResourceResult) -> None:
        assert request.claim is not None, request.id
        self._parts.catalog.abort_admission(request.claim, result)
        request.claim = None
        self.aborted += 1
        if request.broken is not None:
            self._terminals.end(request, cancelled(request.broken))
            return
        # What could not be copied once is not tried again: the next attempt starts from the root.
        request.sources_lost = True
        self._parts.scheduler.put_back(request)
