"""Requests that the engine's own opener admits, over a catalog and a program that are there already."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

from ninfer import native
from ninfer.engine.copies import Copies, CopyBudget
from ninfer.engine.intake import Intake
from ninfer.engine.loop_parts import LoopParts
from ninfer.engine.materialization import Materialization
from ninfer.engine.planned_opener import PlannedOpener
from ninfer.engine.publisher import Publisher
from ninfer.engine.removals import Removals
from ninfer.engine.request import Request
from ninfer.engine.room import Room
from ninfer.engine.scheduler import Scheduler
from ninfer.engine.sequence_release import SequenceRelease
from ninfer.engine.start_options import StartOptions
from ninfer.engine.terminals import Terminals, cancelled
from ninfer.frontend.prompt_boundaries import MessageBoundary, PromptBoundaries
from ninfer.resources.resource_manager import ResourceManager
from ninfer.resources.reuse_key import ReuseKey

OUTPUT_TOKENS = 1000
MESSAGE_TOKENS = 200
FIRST_ID = 1 << 20


class EngineAdmissions:
    """Everything between taking a request from the queue and its started transaction: sources, captures of each, plan,
    the report of what was not reused, claim, start. Each request is discarded afterwards."""

    def __init__(self, program: native.Program, manager: ResourceManager) -> None:
        copies = Copies(program, CopyBudget(), lambda lost: None)
        self._parts = LoopParts(
            program,
            Scheduler(1, 512),
            Intake(1),
            Publisher(lambda events: None),
            time.monotonic,
            copies,
            manager,
            program.statistics(),
        )
        planning = native.PlanningSession(program)
        removals = Removals(self._parts, Room(self._parts, planning))
        self._terminals = Terminals(self._parts, SequenceRelease(self._parts, removals))
        self._materialization = Materialization(self._parts, self._terminals)
        options = StartOptions(self._parts)
        self._opener = PlannedOpener(self._parts, options, planning, self._materialization)
        self._ids = FIRST_ID

    def microseconds(self, prompt: native.PreparedPrompt, boundaries: PromptBoundaries) -> tuple[float, float]:
        """How long one admission takes, and how much of that is the thread's own processor time."""
        self._ids += 1
        plan: Any = SimpleNamespace(
            reserved_tokens=prompt.size + OUTPUT_TOKENS, params=SimpleNamespace(needs_counts=False)
        )
        nothing: Any = None
        request = Request(self._ids, plan, nothing, prompt, None, 0.0, key=ReuseKey(), boundaries=boundaries)
        self._parts.intake.post(request)
        self._parts.intake.take()
        self._parts.scheduler.enqueue(request)
        begun, begun_own = time.perf_counter(), time.thread_time()
        blocked = self._opener.open(request)
        took, own = time.perf_counter() - begun, time.thread_time() - begun_own
        assert blocked is None, blocked
        self._discard(request)
        return took * 1e6, own * 1e6

    def _discard(self, request: Request) -> None:
        while self._materialization.request is not None:
            self._parts.copies.poll(rows_decode=False)
            self._materialization.advance()
        self._terminals.end(request, cancelled("measured", keep=False))
        while self._parts.copies.expected:
            self._parts.copies.poll(rows_decode=False)


def conversation(tokens: int) -> PromptBoundaries:
    """Of a prompt with a message every 200 tokens."""
    starts = range(MESSAGE_TOKENS, tokens - MESSAGE_TOKENS, MESSAGE_TOKENS)
    return PromptBoundaries(
        messages=tuple(MessageBoundary(at, number + 1) for number, at in enumerate(starts)),
        leading_end=MESSAGE_TOKENS,
        turn_closure=tokens - 40,
        response_replay=tokens - 3,
    )
