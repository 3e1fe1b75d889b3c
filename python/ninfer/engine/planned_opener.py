"""Admission with a prompt cache: the best start is planned, claimed and begun."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ninfer import native
from ninfer.engine.loan import Loan
from ninfer.engine.loop_parts import LoopParts
from ninfer.engine.materialization import Materialization
from ninfer.engine.openers import Blocked
from ninfer.engine.request import Request
from ninfer.engine.reuse_report import ReuseReport, source_of
from ninfer.engine.start_options import StartOption, StartOptions
from ninfer.planner.materialization_planner import plan_materialization
from ninfer.planner.planning_result import PermanentlyInfeasible, Planned, StopReason, TemporarilyBlocked
from ninfer.resources.capture_policy import CLOSE_TOKENS, CaptureCandidate
from ninfer.resources.divergence import AdmittedPrompt

# Who may not go now (a copy reads it) is passed over, but the worker does not plan for ever.
_MOST_VICTIMS = 8
_NO_CELL = Blocked("every place for a conversation is taken by running requests")
_COMING = Blocked("a copy of what it starts from is on its way", passes=True)
_NO_LOAN = Blocked("the head of the queue would wait for it")

_Outcome = Planned[native.ContextPlan] | TemporarilyBlocked | PermanentlyInfeasible


@dataclass(frozen=True)
class _Choice:
    """held_back: tokens of the deepest start that others' rights forbid: the head's, or whose cell it was."""

    planned: Planned[native.ContextPlan]
    option: StartOption
    captures: tuple[CaptureCandidate, ...]
    held_back: int = 0


@dataclass(frozen=True)
class _Problem:
    """evicted: who goes in any case."""

    request: Request
    options: list[StartOption]
    evicted: int | None


class PlannedOpener:
    """One planning problem at a time, on the worker thread. Nothing of a request stays if it is refused."""

    def __init__(
        self,
        parts: LoopParts,
        options: StartOptions,
        planning: native.PlanningSession,
        materialization: Materialization,
    ) -> None:
        self._parts = parts
        self._options = options
        self._planning = planning
        self._materialization = materialization

    def open(self, request: Request, loan: Loan | None = None) -> Blocked | None:
        started = self._parts.clock()
        choice = self._claimed_choice(request, loan)
        if isinstance(choice, _Choice):
            request.reuse = self._report(request, choice)
        request.planning_us += round((self._parts.clock() - started) * 1e6)
        return choice if isinstance(choice, Blocked) else self._begin(request, choice)

    def _claimed_choice(self, request: Request, loan: Loan | None) -> _Choice | Blocked:
        everything = self._options.of(request)
        options = _allowed(everything, loan)
        if not options:
            return _NO_LOAN
        choice = self._choose(request, options, captures=loan is None)
        if isinstance(choice, Blocked):
            return choice
        choice = replace(choice, held_back=max(option.candidate.frontier for option in everything))
        if loan is None and self._is_worth_waiting(choice.planned):
            return _COMING
        if self._claim(request, choice):
            return choice
        instead = self._in_place_of_another(request, loan, [choice.option, *options])
        if not isinstance(instead, Blocked):
            return replace(instead, held_back=choice.held_back)
        return self._claimed_choice(request, loan) if self._runs_without_cell(request, instead) else instead

    def _claim(self, request: Request, choice: _Choice, replaces: int | None = None) -> bool:
        request.claim = self._parts.catalog.claim(
            request.id, request.key, choice.option.offer, choice.planned.frontier, replaces
        )
        if request.claim is None:
            return False
        request.claim.rewritten_from = request.boundaries.turn_rewrite
        return True

    def _in_place_of_another(
        self, request: Request, loan: Loan | None, options: Sequence[StartOption]
    ) -> _Choice | Blocked:
        """No cell is free: somebody who is idle goes with the start, or its continuation is taken over. options: the
        wanted one first. If nobody may go now, everything stays."""
        wanted = options[0].offer
        blocked = _NO_CELL
        offers = [option.offer for option in options if option.offer is not None]
        for victim in self._parts.catalog.cell_victims(offers)[:_MOST_VICTIMS]:
            if wanted is not None and victim == wanted.owner:
                taken = _allowed(self._options.of(request, only_place=True), loan)
                choice = self._choose(request, taken, captures=loan is None) if taken else _NO_LOAN
                if isinstance(choice, _Choice) and choice.option.takes_owner and self._claim(request, choice):
                    return choice
            beside = [one for one in options[1:] if one.offer is None or one.offer.owner != victim]
            beside = [one for one in beside if not one.takes_owner]
            choice = self._choose(request, beside, captures=loan is None, evicted=victim) if beside else _NO_LOAN
            if isinstance(choice, _Choice):
                claimed = self._claim(request, choice, replaces=victim)
                assert claimed, request.id
                return choice
            blocked = choice
        return blocked

    def _is_worth_waiting(self, planned: Planned[native.ContextPlan]) -> bool:
        """A deeper source is on its way to where it can be read: a few boundaries are less than a prompt computed
        again."""
        coming = max(planned.coming, self._options.coming)
        return self._parts.copies.expected and coming > planned.frontier + CLOSE_TOKENS

    def _runs_without_cell(self, request: Request, blocked: Blocked) -> bool:
        """When nobody runs whose end would free a cell: an answer that is not kept is better than none."""
        if blocked.passes or self._parts.scheduler.running > 0 or self._parts.copies.expected:
            return False
        request.key = replace(request.key, publishes=False)
        return True

    def _choose(
        self, request: Request, options: list[StartOption], *, captures: bool, evicted: int | None = None
    ) -> _Choice | Blocked:
        """With pages for as many captures as cost nobody anything, the most valuable ones: they are worth neither
        waiting nor an eviction, nor a shorter start."""
        pages = max(option.capture_pages for option in options) if captures else 0
        problem = _Problem(request, options, evicted)
        planned = self._plan(problem, pages)
        if pages > 0 and not _is_best(planned):
            planned, pages = self._with_fewer_captures(problem, (planned, pages))
        if isinstance(planned, TemporarilyBlocked):
            return Blocked.by(planned.refusal)
        assert not isinstance(planned, PermanentlyInfeasible), f"request {request.id}: {planned.refusal}"
        option = options[planned.candidate]
        return _Choice(planned, option, option.captures_within(pages))

    def _with_fewer_captures(self, problem: _Problem, full: tuple[_Outcome, int]) -> tuple[_Outcome, int]:
        """The most pages with which the start is as good as without any; by halves, since fewer pages always fit."""
        best, found = self._plan(problem, 0), 0
        if _goodness(full[0]) >= (least := _goodness(best)):
            return full
        beyond = full[1]
        while beyond - found > 1:
            pages = (found + beyond) // 2
            planned = self._plan(problem, pages)
            if _goodness(planned) >= least:
                best, found = planned, pages
            else:
                beyond = pages
        return best, found

    def _plan(self, problem: _Problem, pages: int) -> _Outcome:
        candidates = [option.candidate for option in problem.options]
        publications = [option.publication(problem.request, pages) for option in problem.options]
        catalog, session = self._parts.catalog, self._planning
        if problem.evicted is None:
            return plan_materialization(session, candidates, publications, catalog.protected_owners())
        always = [native.Degradation("evict", owner=problem.evicted)]
        # A full catalog is no rare state, and the program reads whoever may change: first it is that one alone.
        others = catalog.all_owners() - {problem.evicted}
        planned = plan_materialization(session, candidates, publications, list(others), always)
        if _goodness(planned)[0] == 2:
            return planned
        return plan_materialization(session, candidates, publications, catalog.protected_owners(), always)

    def _begin(self, request: Request, choice: _Choice) -> Blocked | None:
        assert request.claim is not None, request.id
        request.base = choice.planned.frontier
        request.captures = list(choice.captures)
        refused = self._materialization.start(request, choice.planned.plan)
        if refused is None:
            return None
        self._parts.catalog.abort_admission(request.claim, None)
        request.claim = None
        return Blocked.by(refused)

    def _report(self, request: Request, choice: _Choice) -> ReuseReport:
        """Before the source is moved or consumed."""
        planned, offer = choice.planned, choice.option.offer
        shortfall = self._parts.catalog.divergence(
            AdmittedPrompt(
                request.prompt,
                request.key,
                request.boundaries,
                planned.frontier,
                choice.held_back if choice.held_back > max(planned.frontier, planned.coming) else planned.refused,
                request.unsalted,
            )
        )
        if offer is None:
            return ReuseReport(shortfall=shortfall)
        checkpoint = native.must(self._parts.program.checkpoint(offer.checkpoint))
        return ReuseReport(source_of(checkpoint), offer.kind, planned.frontier, shortfall)


def _allowed(options: list[StartOption], loan: Loan | None) -> list[StartOption]:
    return options if loan is None else [option for option in options if loan.allows(option)]


def _is_best(planned: _Outcome) -> bool:
    """Nobody gives anything up, and nothing deeper was there."""
    return _goodness(planned)[0] == 2 and isinstance(planned, Planned) and planned.refused == 0


def _goodness(planned: _Outcome) -> tuple[int, int]:
    if not isinstance(planned, Planned):
        return 0, 0
    return (2 if planned.stop_reason is StopReason.NO_PRESSURE else 1), planned.frontier
