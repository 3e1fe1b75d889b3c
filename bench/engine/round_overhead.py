"""What the engine itself costs per decode round: the time of a boundary that is not spent inside the program.

    python bench/engine/round_overhead.py [--rounds N]

Rows of 1 and 8, with a program that computes nothing and with the packaged demo model; then with eight HTTP streams
attached, also while a prompt of 240,000 tokens is rendered and tokenised, and the time from a first token to its first
byte at the client. The last line is PASS or FAIL by the limits below, or INVALID where a limit was missed while others
used the machine; the exit code is 0, 1 or 75.
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

import numpy as np

import ninfer
from bench.engine.http_overhead import STREAMS, UNIT_SECONDS, SleepingProgram, exact_sleeps, measure
from bench.support.machine import describe_machine
from bench.support.other_work import MOST_OTHER_WORK, OtherWork
from ninfer import native
from ninfer.demo import HYBRID_DIRECTORY
from ninfer.engine.copies import CopyBudget
from ninfer.engine.generation_plan import plan_generation
from ninfer.engine.intake import Intake
from ninfer.engine.loaded_model import LoadedModel
from ninfer.engine.loop_assembly import make_loop, make_parts
from ninfer.engine.output_session import OutputSession
from ninfer.engine.publisher import Publisher
from ninfer.engine.request import Request
from ninfer.engine.sampling_params import SamplingParams
from tests.fixtures.fake_program import FakeProgram

LIMITS_US = {1: 40.0, 8: 300.0}
FIRST_BYTE_LIMIT_MS = 5.0
WARM_UP_ROUNDS = 50
EXIT_CODES = {"PASS": 0, "FAIL": 1, "INVALID": 75}


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
    program: Any = TimedProgram(model.program)
    planning = native.PlanningSession(model.program) if model.options.context_cache else None
    intake = Intake(rows)
    told = 0

    def hand_over(batch: list[Any]) -> None:
        nonlocal told
        told += len(batch)

    parts = make_parts(replace(model, program=program), intake, Publisher(hand_over), time.monotonic, CopyBudget())
    loop = make_loop(model, parts, planning)
    params = SamplingParams(
        max_tokens=rounds + WARM_UP_ROUNDS + 2 * rows + 8, temperature=0.8, top_k=40, ignore_eos=True, stop=("\0never",)
    )
    for number in range(rows):
        plan = plan_generation(model, [25 + number] * 16, params)
        output = OutputSession(model.frontend.tokenizer, plan, model.files.config.vocab_size)
        prompt = native.PreparedPrompt(np.asarray(plan.prompt, np.int32))
        intake.post(Request(number + 1, plan, output, prompt, None, time.monotonic(), time.monotonic() + 3600))
    while len(parts.scheduler.decoding) < rows:
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


class Report:
    """Prints one line per measurement; `passed` as long as every median is within its limit."""

    def __init__(self) -> None:
        self.passed = True
        print(f"{'':<34}{'rows':>5}{'median':>9}{'p99':>9}{'limit':>8}{'ratio':>7}")

    def show(self, name: str, rows: int, values: list[float]) -> None:
        """Something to compare with, which has no limit."""
        print(f"{name:<34}{rows:>5}{statistics.median(values):>9.1f}{statistics.quantiles(values, n=100)[-1]:>9.1f}")

    def add(self, name: str, rows: int, values: list[float], limit: float, remark: str = "") -> None:
        median, p99 = statistics.median(values), statistics.quantiles(values, n=100)[-1]
        self.passed &= median <= limit
        print(f"{name:<34}{rows:>5}{median:>9.1f}{p99:>9.1f}{limit:>8.0f}{median / limit:>7.2f}  {remark}".rstrip())


def lateness_us(model: LoadedModel, rows: int, rounds: int, report: Report) -> float:
    """How late a sleeping unit ends where nobody is attached, by the median.

    What the engine does after a sleep is slower than after work: the processor has forgotten it.
    """
    program: Any = SleepingProgram(rows)
    sleeping = replace(model, program=program, options=replace(model.options, context_cache=False))
    outside, inside = overheads_us(sleeping, rows, rounds)
    report.show("units of 5 ms, nobody attached", rows, outside)
    return statistics.median(inside) - UNIT_SECONDS * 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=400)
    rounds = parser.parse_args().rounds
    print(describe_machine())
    print(f"{rounds} decode rounds after a warm-up; µs per round unless it says ms; ratio: median / limit")
    report = Report()
    others = OtherWork()
    with ninfer.load(HYBRID_DIRECTORY, max_concurrency=8) as engine:
        without_cache = replace(engine.model.options, context_cache=False)
        program: Any = FakeProgram(lanes=8)
        fake = replace(engine.model, program=program, options=without_cache)
        for name, model in (("no program", fake), ("demo model", engine.model)):
            for rows, limit in LIMITS_US.items():
                outside, inside = overheads_us(model, rows, rounds)
                remark = f"{statistics.median(inside):.1f} inside the program"
                report.add(name, rows, outside, limit, remark)
        exact_sleeps()
        for rows, limit in LIMITS_US.items():
            late_us = lateness_us(engine.model, rows, rounds, report)
            measured = measure(engine.model, rows, rounds, late_us)
            report.add(f"{STREAMS} HTTP streams", rows, measured.overhead_us, limit)
            # The limit for this one is that of eight rows, whatever decodes.
            report.add("  while 240k tokens render", rows, measured.rendering_us, LIMITS_US[8])
        report.add("  first token to first byte, ms", rows, measured.first_byte_ms, FIRST_BYTE_LIMIT_MS)
    share = others.share()
    verdict = "PASS" if report.passed else "FAIL" if share <= MOST_OTHER_WORK else "INVALID"
    print(f"others used {share:.0%} of the CPU time\n{verdict}")
    return EXIT_CODES[verdict]


if __name__ == "__main__":
    raise SystemExit(main())
