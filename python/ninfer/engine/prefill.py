"""One unit of the one staged prompt."""

from __future__ import annotations

from ninfer import native
from ninfer.engine.captures import Captures
from ninfer.engine.events import PrefillProgress
from ninfer.engine.loop_parts import LoopParts
from ninfer.engine.refusals import passes
from ninfer.engine.request import Request
from ninfer.engine.settlement import Settlement


class Prefill:
    """A unit ends at the chunk limit or at the frontier of the next capture. The last one samples the first token.

    While a copy is on its way that the sequence waits for (its partial page, its image to Host), there is no unit.
    """

    def __init__(self, parts: LoopParts, captures: Captures, settlement: Settlement) -> None:
        self._parts = parts
        self._captures = captures
        self._settlement = settlement

    def unit(self) -> bool:
        """Whether something is to be told."""
        request = self._parts.scheduler.prefilling
        if request is None or not self._captures.take(request):
            return False
        most = self._parts.scheduler.prefill_limit
        if request.captures:
            most = min(most, request.captures[0].frontier - request.prefilled)
        if request.prompt.size - request.prefilled > most:
            return self._intermediate(request, most)
        self._last(request)
        return False

    def _intermediate(self, request: Request, most: int) -> bool:
        computed = self._parts.program.prefill(request.open_sequence, most)
        if isinstance(computed, native.Refusal):
            assert passes(computed), str(computed)
            return False
        request.prefilled += computed
        self._captures.take(request)
        if request.report_progress:
            progress = PrefillProgress(request.prefilled, request.prompt.size, request.base)
            self._parts.publisher.add(request, [progress])
        return request.report_progress

    def _last(self, request: Request) -> None:
        batch = self._parts.program.finish_prefill(request.open_sequence, request.output.sampler)
        if isinstance(batch, native.Refusal):
            assert passes(batch), str(batch)
            return
        request.prefilled = request.prompt.size
        self._settlement.settle([request], batch)
