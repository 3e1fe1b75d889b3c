"""What the engine itself costs per decode round: the time of a boundary that is not spent inside the program.

    python bench/engine/round_overhead.py [--rounds N]

Rows of 1 and 8, with a program that computes nothing and with the packaged demo model. The last line is PASS or FAIL
by the limits below; the exit code is 0 or 1.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # so that this also runs as a script

import ninfer
from bench.support.machine import describe_machine
from ninfer.demo import HYBRID_DIRECTORY
from ninfer.engine.generation_plan import plan_generation
from ninfer.engine.intake import Intake
from ninfer.engine.loaded_model import LoadedModel
from ninfer.engine.output_session import OutputSession
from ninfer.engine.publisher import Publisher
from ninfer.engine.request import Request
from ninfer.engine.sampling_params import SamplingParams
from ninfer.engine.scheduler import Scheduler
from ninfer.engine.step_loop import StepLoop
from tests.fixtures.fake_program import FakeProgram

LIMITS_US = {1: 40.0, 8: 300.0}
WARM_UP_ROUNDS = 50


class TimedProgram:
    """The program with a stopwatch around its units; everything else is the program's own."""

    def __init__(self, program: Any) -> None:
        self._program = program
        self.seconds = 0.0
        self.decode = self._timed(program.decode)
        self.commit = self._timed(program.commit)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)

    def _timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            start = time.perf_counter()
            result = call(*arguments)
            self.seconds += time.perf_counter() - start
            return result

        return timed


def overheads_us(model: LoadedModel, rows: int, rounds: int) -> tuple[list[float], list[float]]:
    """Microseconds outside and inside the program, one entry per round of `rows` rows."""
    program = TimedProgram(model.program)
    intake = Intake(rows)
    told = 0

    def hand_over(batch: list[Any]) -> None:
        nonlocal told
        told += len(batch)

    scheduler = Scheduler(model.capacity.max_concurrency, model.prefill_chunk)
    loop = StepLoop(program, scheduler, intake, Publisher(hand_over), time.monotonic)  # type: ignore[arg-type]
    params = SamplingParams(
        max_tokens=rounds + WARM_UP_ROUNDS + 2 * rows + 8, temperature=0.8, top_k=40, ignore_eos=True, stop=("\0never",)
    )
    for number in range(rows):
        plan = plan_generation(model, [25 + number] * 16, params)
        output = OutputSession(model.frontend.tokenizer, plan, model.files.config.vocab_size)
        intake.post(Request(number + 1, plan, output, None, time.monotonic(), deadline=time.monotonic() + 3600))
    while len(scheduler.decoding) < rows:
        loop.boundary()
    for _ in range(WARM_UP_ROUNDS):
        loop.boundary()
    outside, inside = [], []
    gc.collect()
    told = 0
    for _ in range(rounds):
        program.seconds = 0.0
        start = time.perf_counter()
        loop.boundary()
        outside.append((time.perf_counter() - start - program.seconds) * 1e6)
        inside.append(program.seconds * 1e6)
    assert told == rounds * rows, "every round told every row"
    loop.cancel_all("measured")
    return outside, inside


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=400)
    rounds = parser.parse_args().rounds
    print(describe_machine())
    print(f"{rounds} decode rounds after {WARM_UP_ROUNDS} of warm-up; µs per round")
    print(f"{'program':<10}{'rows':>6}{'median':>10}{'p99':>10}{'limit':>8}{'inside the program':>22}")
    passed = True
    with ninfer.load(HYBRID_DIRECTORY, max_concurrency=8) as engine:
        fake = replace(engine.model, program=FakeProgram(lanes=8))  # type: ignore[arg-type]  # a stand-in
        for name, model in (("fake", fake), ("demo", engine.model)):
            for rows, limit in LIMITS_US.items():
                outside, inside = overheads_us(model, rows, rounds)
                median, p99 = statistics.median(outside), statistics.quantiles(outside, n=100)[-1]
                passed &= median <= limit
                within = statistics.median(inside)
                print(f"{name:<10}{rows:>6}{median:>10.1f}{p99:>10.1f}{limit:>8.0f}{within:>22.1f}")
    print("PASS" if passed else "FAIL")
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main())
