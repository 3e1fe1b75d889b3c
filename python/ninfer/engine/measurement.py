"""Measures what copying and computing a prompt take on this machine with this model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ninfer import native
from ninfer.economics.calibration import Calibration, MachineKey, prefill_signature
from ninfer.economics.fitted_cost import (
    PrefillSample,
    TransferSample,
    fitted_prefill,
    fitted_transfer,
)
from ninfer.economics.machine_cost import MachineCost
from ninfer.engine.capacity import PAGE_TOKENS
from ninfer.engine.loaded_model import LoadedModel

Clock = Callable[[], float]
"""Seconds."""

_BASES = (0, 1024, 4096, 16384)
_SUFFIXES = (16, 64, 256, 1024)
_COPY_PAGES = (1, 4, 16, 64, 256)
# The smallest time of so many counts: other work on the machine only adds.
_REPETITIONS = 3
_TOKEN = 1


@dataclass
class Measurement:
    """On a model whose program nobody uses. seconds: after so many no further lengths are begun.

    Raises native refusals as ValueError where not even the smallest lengths fit.
    """

    model: LoadedModel
    machine: MachineKey
    seconds: float = 20.0
    clock: Clock = time.perf_counter
    prefills: list[PrefillSample] = field(default_factory=list)
    copies: dict[str, dict[tuple[int, int], float]] = field(default_factory=dict)
    """By direction, pieces and bytes: the shortest time in nanoseconds."""

    def calibrate(self) -> Calibration:
        ends = self.clock() + self.seconds
        for base in self._bases():
            if self.clock() > ends and self.prefills:
                break
            self._measure_prefill(base, ends)
        for pages in self._copy_sizes():
            self._measure_copies(pages)
        prefill, prefill_error = fitted_prefill(self.prefills)
        fits = {
            name: fitted_transfer([TransferSample(*size, ns) for size, ns in shortest.items()])
            for name, shortest in self.copies.items()
        }
        cost = MachineCost(prefill=prefill, source="calibrated", **{name: fit for name, (fit, _) in fits.items()})
        residuals = {"prefill": prefill_error, **{name: error for name, (_, error) in fits.items()}}
        capacity = self.model.capacity
        signature = prefill_signature(self.model.files.config, self.model.options.weights, capacity.kv_dtype)
        return Calibration(self.machine, signature, cost, residuals)

    def _bases(self) -> Iterator[int]:
        longest = max(self._suffixes())
        yield from (base for base in _BASES if base + longest < self.model.capacity.max_context)

    def _suffixes(self) -> list[int]:
        most = min(self.model.prefill_chunk, self.model.capacity.max_context - 1)
        return [one for one in _SUFFIXES if one <= most] or [most]

    def _measure_prefill(self, base: int, ends: float) -> None:
        """Every length behind the base, the shortest first."""
        program = self.model.program
        for suffix in self._suffixes():
            if self.clock() > ends and self.prefills:
                return
            times = []
            for _ in range(_REPETITIONS):
                sequence = self._computed(base, base + suffix + 1)
                started = self.clock()
                native.must(program.prefill(sequence, suffix))
                times.append(self.clock() - started)
                native.must(program.close_sequence(sequence))
            self.prefills.append(PrefillSample(base, suffix, min(times) * 1e9))

    def _computed(self, tokens: int, room: int) -> int:
        """A sequence that has computed so many tokens."""
        program = self.model.program
        sequence: int = native.must(program.open_sequence(room, captures=1))
        native.must(program.append(sequence, np.full(room, _TOKEN, dtype=np.int32)))
        done = 0
        while done < tokens:
            done += native.must(program.prefill(sequence, min(self.model.prefill_chunk, tokens - done)))
        return sequence

    def _copy_sizes(self) -> list[int]:
        statistics = self.model.program.statistics()
        host = statistics.capacity.host_blocks * statistics.host_block_bytes - statistics.state_image_bytes
        most = min(
            host // statistics.page_bytes, statistics.pages_free - 1, self.model.capacity.max_context // PAGE_TOKENS - 1
        )
        return [one for one in _COPY_PAGES if one <= most]

    def _measure_copies(self, pages: int) -> None:
        """Of a checkpoint with so many pages, not whole at its end: to Host, back, and into a sequence beside it."""
        program = self.model.program
        tokens = pages * PAGE_TOKENS - PAGE_TOKENS // 2
        sequence = self._computed(tokens, tokens + 1)
        owner = native.must(program.finish(sequence))
        [checkpoint] = native.must(program.owner(owner)).checkpoints
        image = int(program.statistics().state_image_bytes > 0)
        for _ in range(_REPETITIONS):
            self._copy("to_host", pages + image, lambda: native.must(program.start_copy(checkpoint, "host")))
            native.must(program.drop(checkpoint, "device"))
            self._copy("to_device", pages + image, lambda: native.must(program.start_copy(checkpoint, "device")))
            native.must(program.drop(checkpoint, "host"))
        self._measure_fork(checkpoint, tokens, image)
        native.must(program.release_owner(owner))

    def _measure_fork(self, checkpoint: int, tokens: int, image: int) -> None:
        program = self.model.program
        statistics = program.statistics()
        opened: list[int] = []

        def fork() -> int:
            opened.append(native.must(program.open_from(checkpoint, tokens + 1)))
            return statistics.page_bytes + image * statistics.state_image_bytes

        for _ in range(_REPETITIONS):
            self._copy("within_device", 1 + image, fork)
            native.must(program.close_sequence(opened.pop()))
            program.poll_copies()

    def _copy(self, direction: str, operations: int, begin: Callable[[], int]) -> None:
        started = self.clock()
        moved = begin()
        while self.model.program.poll_copies(64 << 20).open:
            pass
        took = (self.clock() - started) * 1e9
        shortest = self.copies.setdefault(direction, {})
        shortest[operations, moved] = min(took, shortest.get((operations, moved), took))
