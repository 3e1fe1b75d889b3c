"""Requests as the engine admits them, without an engine: catalog, candidates, plan, transaction, with a stopwatch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ninfer import native
from ninfer.planner.materialization_planner import plan_materialization
from ninfer.planner.planning_result import Planned
from ninfer.resources.checkpoint_kind import CheckpointKind
from ninfer.resources.claim import Claim
from ninfer.resources.context_cache_options import ContextCacheOptions
from ninfer.resources.removal_reason import RemovalReason
from ninfer.resources.resource_manager import ResourceManager
from ninfer.resources.reuse_key import ReuseKey

UNIT_TOKENS = 512
MOST_CAPTURES = 12


@dataclass
class Admitted:
    """A request with its sequence. stages_us: what each step of its admission took; processor_us: of the thread, until
    the transaction was started."""

    claim: Claim
    sequence: int
    prompt: native.PreparedPrompt
    frontier: int
    stages_us: dict[str, float]
    processor_us: float


class PlannedAdmissions:
    """One request at a time."""

    def __init__(self, program: native.Program, options: ContextCacheOptions) -> None:
        self.program = program
        self.manager = ResourceManager(options, program)
        self.session = native.PlanningSession(program)
        self._ids = 0

    def admit(self, prompt: native.PreparedPrompt, key: ReuseKey, most_tokens: int) -> Admitted:
        """From the best source, with room for most_tokens in all."""
        self._ids += 1
        watch = _StopWatch()
        offers = self.manager.shortlist(prompt, key)
        watch.lap("shortlist")
        found = native.must(self.program.candidates(prompt, [(one.checkpoint, one.use) for one in offers]))
        watch.lap("candidates")
        publications = [native.Publication.admission(one, prompt, most_tokens, False, MOST_CAPTURES) for one in found]
        planned = plan_materialization(self.session, found, publications, self.manager.protected_owners())
        watch.lap("plan")
        assert isinstance(planned, Planned), planned
        chosen = found[planned.candidate]
        offer = next((one for one in offers if (one.checkpoint, one.use) == (chosen.checkpoint, chosen.use)), None)
        claim = self.manager.claim(self._ids, key, offer, chosen.frontier if offer else None)
        assert claim is not None, "there are more cells than conversations"
        watch.lap("claim")
        result = native.must(self.program.start_transaction(planned.plan))
        watch.lap("start")
        processor_us = watch.processor_us()
        while result is None:
            self.program.poll_copies()
            result = native.must(self.program.advance_transaction())
        assert result.sequence is not None
        owner = native.must(self.program.sequence(result.sequence)).owner
        watch.lap("transfer")
        self.manager.adopt_admission(claim, result, owner)
        watch.lap("adopt")
        native.must(self.program.append_prompt(result.sequence, prompt))
        return Admitted(claim, result.sequence, prompt, chosen.frontier, watch.laps_us, processor_us)

    def compute(self, request: Admitted, frontier: int) -> None:
        """The prompt up to this token, which is not its last."""
        done = native.must(self.program.sequence(request.sequence)).computed
        while done < frontier:
            done += native.must(self.program.prefill(request.sequence, min(UNIT_TOKENS, frontier - done)))

    def capture(self, request: Admitted, kind: CheckpointKind = CheckpointKind.LONG_ANCHOR) -> None:
        assert self.manager.capture_room(request.claim, shared=False)
        self.manager.adopt_capture(request.claim, native.must(self.program.capture(request.sequence, kind)), kind)
        self.program.poll_copies()

    def finish(self, request: Admitted) -> None:
        """Computes the rest and one token that nobody wants."""
        self.compute(request, request.prompt.size - 1)
        batch = native.must(self.program.finish_prefill(request.sequence, native.Sampler()))
        native.must(self.program.abort(batch))
        owner = native.must(self.program.finish(request.sequence))
        self.manager.adopt_finish(request.claim, owner, CheckpointKind.SESSION_ENDPOINT)
        self.program.poll_copies()
        for checkpoint in self.manager.doomed():
            native.must(self.program.delete_checkpoint(checkpoint))
            self.manager.note_removed([checkpoint], RemovalReason.SUPERSEDED)

    def discard(self, request: Admitted) -> None:
        native.must(self.program.close_sequence(request.sequence))
        self.manager.discard(request.claim)
        self.program.poll_copies()

    def keep(self, tokens: Sequence[int], key: ReuseKey, captures: Sequence[int] = ()) -> int:
        """A finished request, from wherever it may start; tokens that were reused."""
        prompt = native.PreparedPrompt(np.array(tokens, dtype=np.int32), salt=key.salt)
        request = self.admit(prompt, key, len(tokens) + 16)
        for frontier in captures:
            if frontier > request.frontier:
                self.compute(request, frontier)
                self.capture(request)
        self.finish(request)
        return request.frontier


class _StopWatch:
    def __init__(self) -> None:
        self.laps_us: dict[str, float] = {}
        self._processor = time.thread_time()
        self._last = time.perf_counter()

    def processor_us(self) -> float:
        return (time.thread_time() - self._processor) * 1e6

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps_us[name] = (now - self._last) * 1e6
        self._last = time.perf_counter()
