"""How a request gets its sequence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ninfer import native
from ninfer.engine.loan import Loan
from ninfer.engine.loop_parts import LoopParts
from ninfer.engine.refusals import passes
from ninfer.engine.request import Request, RequestState
from ninfer.planner.planning_session import RefusalFacts


@dataclass(frozen=True)
class Blocked:
    """Why a request cannot start now; nothing has changed for it. passes: it may at the next boundary, since a copy or
    a unit under way is all that it waits for; else somebody has to end first."""

    reason: str
    passes: bool = False

    @classmethod
    def by(cls, refusal: RefusalFacts) -> Blocked:
        return cls(f"{refusal.kind}: wanted {refusal.wanted}, found {refusal.found}", passes(refusal))


class Opener(Protocol):
    def open(self, request: Request, loan: Loan | None = None) -> Blocked | None:
        """Starts a queued request, or says why not. loan: from where it may start before the head; it takes no more
        than what its tokens need."""


class RootOpener:
    """Without a prompt cache: every prompt is computed as a whole."""

    def __init__(self, parts: LoopParts) -> None:
        self._parts = parts

    def open(self, request: Request, loan: Loan | None = None) -> Blocked | None:
        plan, prompt = request.plan, request.prompt
        opened = self._parts.program.open_sequence(
            plan.reserved_tokens, plan.params.needs_counts, 0, prompt.salt, prompt.mode
        )
        if isinstance(opened, native.Refusal):
            return Blocked.by(opened)
        request.sequence = opened
        native.must(self._parts.program.append_prompt(opened, prompt))
        request.admitted = self._parts.clock()
        self._parts.scheduler.stage(request, RequestState.PREFILLING)
        self._parts.transition_ended()
        return None
