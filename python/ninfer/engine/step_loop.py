"""One boundary of the engine: what runs when, and who is told."""

from __future__ import annotations

from ninfer import native
from ninfer.engine.admission import Admission
from ninfer.engine.backfill import Backfill
from ninfer.engine.captures import Captures
from ninfer.engine.catalog_view import CatalogView
from ninfer.engine.events import DEADLINE, Failed
from ninfer.engine.loop_parts import LoopParts
from ninfer.engine.materialization import Materialization
from ninfer.engine.openers import Opener, RootOpener
from ninfer.engine.planned_opener import PlannedOpener
from ninfer.engine.prefill import Prefill
from ninfer.engine.removals import Removals
from ninfer.engine.request import Request, RequestState, move
from ninfer.engine.room import Room
from ninfer.engine.sequence_release import SequenceRelease
from ninfer.engine.settlement import Settlement
from ninfer.engine.start_options import StartOptions
from ninfer.engine.terminals import Terminals, cancelled


class StepLoop:
    """Runs on the engine's thread, the only writer of scheduler, catalog and program.

    What a unit computed is previewed as text, then committed, then accounted, and only then told; a request's end is
    told after its sequence was finished or discarded. Any exception out of `boundary` is an engine failure; what is
    pending or open then is ended by `fail`.
    """

    def __init__(self, parts: LoopParts, planning: native.PlanningSession | None) -> None:
        """planning: used by this loop alone; None without a prompt cache."""
        self._removals = removals = Removals(parts, Room(parts, planning))
        self._parts = parts
        self._release = SequenceRelease(parts, removals)
        self._terminals = Terminals(parts, self._release)
        self._materialization = Materialization(parts, self._terminals)
        opener: Opener = RootOpener(parts)
        if planning is not None:
            opener = PlannedOpener(parts, StartOptions(parts), planning, self._materialization)
        self._admission = Admission(parts, opener, Backfill(parts))
        self._captures = Captures(parts, removals)
        self._settlement = Settlement(parts, self._terminals, self._interrupted, self._break_off, self._publish)
        self._prefill = Prefill(parts, self._captures, self._settlement)

    @property
    def statistics(self) -> native.ProgramStatistics:
        """The program's after its last transition."""
        return self._parts.statistics

    @property
    def idle(self) -> bool:
        """Whether a boundary would do nothing until there is mail."""
        return self._parts.scheduler.idle and not self._parts.copies.expected

    def boundary(self) -> None:
        """Takes effect on every live request at least once, and returns after at most two model units."""
        parts = self._parts
        self._break_off(self._interrupted())
        self._materialization.advance()  # begins copies, which move at once
        if parts.copies.expected:
            parts.copies.poll(rows_decode=bool(parts.scheduler.decoding))
            parts.transition_ended()
        self._materialization.advance()
        self._terminals.retry()
        if parts.manager is not None and parts.manager.doomed():
            self._removals.sweep()
        self._publish()
        self._admission.admit()
        if self._prefill.unit():
            self._publish()
        rows = parts.scheduler.decoding
        if rows:
            batch = native.must(parts.program.decode([(row.open_sequence, row.output.sampler) for row in rows]))
            self._settlement.settle(list(rows), batch)

    def cancel_all(self, reason: str) -> None:
        """Ends every live request; what they have computed is not kept."""
        self._interrupted()
        self._end_transaction(reason)
        for request in self._parts.intake.live():
            if request.state is not RequestState.TERMINAL_PENDING:
                self._terminals.end(request, cancelled(reason, keep=False))
        while self._parts.scheduler.ending:
            self._parts.copies.expect()
            self._parts.copies.poll(rows_decode=False)
            self._terminals.retry()
        self._publish()

    def fail(self, message: str) -> None:
        """After an exception: tells every live request and gives back what the program still lets go of. What was kept
        of earlier requests may stay where it is."""
        requests = self._parts.intake.live()
        for request in requests:
            if not request.ended:
                move(request, RequestState.FAILED)
            self._parts.intake.forget(request)
            self._parts.publisher.add(request, [Failed(message)])
        try:
            self._parts.publisher.flush()
        finally:
            self._parts.program.abort_pending()
            for request in requests:
                if request.sequence is not None:
                    self._parts.program.close_sequence(request.sequence)
            self._parts.transition_ended()

    def view(self) -> CatalogView:
        """What the prompt cache holds."""
        manager = self._parts.manager
        return CatalogView(
            slots=() if manager is None else manager.slots(),
            statistics=None if manager is None else manager.statistics(),
            captures_taken=self._captures.taken,
            captures_skipped=tuple(sorted(self._captures.skipped.items())),
            endpoints_kept=self._release.kept,
            endpoints_without_room=self._release.without_room,
            backfilled=self._admission.backfilled,
            aborted=self._materialization.aborted,
        )

    def _interrupted(self) -> dict[Request, str]:
        """Takes the mail; the live requests that are to be broken off, with the reason."""
        parts = self._parts
        broken: dict[Request, str] = {}
        mail = parts.intake.take()
        for request in mail.submissions:
            parts.scheduler.enqueue(request)
            parts.deadlines.add(request)
        if mail.cancels:
            live = {request.id: request for request in parts.intake.live()}
            broken = {live[name]: reason for name, reason in mail.cancels.items() if name in live}
        if parts.deadlines.any:
            for request in parts.deadlines.late(parts.clock()):
                broken.setdefault(request, DEADLINE)
        return broken

    def _break_off(self, broken: dict[Request, str]) -> None:
        for request, reason in broken.items():
            if request.state is RequestState.MATERIALIZING:
                self._materialization.cancel(request, reason)
            elif request.state is not RequestState.TERMINAL_PENDING and not request.ended:
                self._terminals.end(request, cancelled(reason))

    def _end_transaction(self, reason: str) -> None:
        """The open one is cancelled; its copies are waited for."""
        while (request := self._materialization.request) is not None:
            self._materialization.cancel(request, reason)
            self._parts.copies.poll(rows_decode=False)
            self._materialization.advance()

    def _publish(self) -> None:
        for request in self._parts.publisher.flush():
            self._parts.intake.cancel(request.id, "its receiver failed")
