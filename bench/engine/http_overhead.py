"""What the engine costs per decode round while it serves HTTP, and how fast a first token reaches its client.

The program computes nothing: a unit sleeps, with the interpreter released, as a native one computes. What a boundary
takes beyond the sleep is the engine's own work and its waiting for the interpreter, which the event loop and the
preparation of prompts use meanwhile. How late a unit ends where nobody is attached is measured first, and taken off.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.engine.http_clients import LONG_TOKENS, MARKER, STREAMS
from ninfer.engine.loaded_model import LoadedModel
from ninfer.engine.service import EngineService
from ninfer.serving.app import create_app
from ninfer.serving.event_router import EventRouter
from ninfer.serving.served_model import ServedModel
from ninfer.serving.serving_options import ServingOptions
from tests.fixtures.fake_program import FakeProgram
from tests.python.serving.live_server import serving

UNIT_SECONDS = 0.005
WARM_UP_SECONDS = 1.0
_PR_SET_TIMERSLACK = 29


class SleepingProgram(FakeProgram):
    """first_tokens: when the prefill of each short request ended. slept: units of the current boundary."""

    def __init__(self, lanes: int) -> None:
        super().__init__(lanes)
        self.first_tokens: list[float] = []
        self.own_seconds = 0.0
        self.slept = 0
        self.rows = 0

    def decode(self, rows: Any) -> Any:
        batch = self._timed(lambda: FakeProgram.decode(self, rows))
        self.units.clear()
        self.rows = len(rows)
        self._sleep()
        return batch

    def finish_prefill(self, sequence: int, sampler: Any) -> Any:
        batch = self._timed(lambda: FakeProgram.finish_prefill(self, sequence, sampler))
        self._sleep()
        if self.sequences[sequence].prompt[0] == MARKER:
            self.first_tokens.append(time.perf_counter())
        return batch

    def commit(self, batch: Any, accepted: list[int]) -> None:
        self._timed(lambda: FakeProgram.commit(self, batch, accepted))

    def _sleep(self) -> None:
        self.slept += 1
        time.sleep(UNIT_SECONDS)

    def _timed(self, call: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = call()
        self.own_seconds += time.perf_counter() - start
        return result


@dataclass
class Measured:
    """Microseconds per decode round of all rows. rendering: of those during which a long prompt was prepared."""

    overhead_us: list[float] = field(default_factory=list)
    rendering_us: list[float] = field(default_factory=list)
    first_byte_ms: list[float] = field(default_factory=list)


def measure(model: LoadedModel, rows: int, rounds: int, late_us: float) -> Measured:
    """Eight HTTP streams, of which `rows` decode and the others wait. late_us: how late a unit ends without them."""
    program = SleepingProgram(rows)
    router = EventRouter()
    capacity = replace(model.capacity, max_concurrency=rows, kv_pages=1 << 20)
    stand_in: Any = program
    service = EngineService(
        replace(model, program=stand_in, options=replace(model.options, context_cache=False), capacity=capacity),
        max_queued=64,
        hand_over=router.hand_over,
    )
    measured = Measured()
    rendering = threading.Event()
    boundary = service._loop.boundary

    def timed_boundary() -> None:
        program.own_seconds, program.slept, program.rows = 0.0, 0, 0
        begun_rendering = rendering.is_set()
        start = time.perf_counter()
        boundary()
        seconds = time.perf_counter() - start
        if program.slept == 1 and program.rows == rows:
            own = (seconds - UNIT_SECONDS - program.own_seconds) * 1e6 - late_us
            (measured.rendering_us if begun_rendering and rendering.is_set() else measured.overhead_us).append(own)

    service._loop.boundary = timed_boundary  # type: ignore[method-assign]  # nobody else may touch the loop
    service.start()
    options = ServingOptions(served_model_names=("bench",), max_body_mib=8)
    # As if the long prompt fitted: it would not be tokenised otherwise. Then the engine refuses it.
    served = replace(ServedModel.of(model), max_context=1 << 20)
    app = create_app(service, router, served, options)
    with serving(app, options, lambda: service.stop(30)) as port, clients(port) as ask:
        time.sleep(WARM_UP_SECONDS)
        measured.overhead_us.clear()
        time.sleep(rounds * UNIT_SECONDS)
        steady = list(measured.overhead_us)
        while len(measured.rendering_us) < rounds // 4:
            rendering.set()
            status, _ = ask("render")
            rendering.clear()
            assert status == 400, f"{LONG_TOKENS} tokens fit"
        measured.overhead_us = steady
        if rows > 1:
            measured.first_byte_ms = first_byte_ms(ask, program)
        assert ask("stop") > 0, "the streams said something"
    return measured


def first_byte_ms(ask: Callable[[str], Any], program: SleepingProgram) -> list[float]:
    """From the end of a prefill, which is when there is a first token, to its first byte at the client."""
    arrived = ask("first 30")
    assert len(arrived) == len(program.first_tokens), (len(arrived), len(program.first_tokens))
    return [(two - one) * 1e3 for one, two in zip(program.first_tokens, arrived, strict=True)]


def exact_sleeps() -> None:
    """Asks the system to end the sleeps of this thread, and of those it starts from now on, when they should end."""
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)


@contextmanager
def clients(port: int) -> Iterator[Callable[[str], Any]]:
    """Eight streams in a process of their own; what is yielded sends a command and returns the answer."""
    command = [sys.executable, str(Path(__file__).with_name("http_clients.py")), str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        asking, answering = process.stdin, process.stdout

        def ask(line: str) -> Any:
            asking.write(line + "\n")
            asking.flush()
            return json.loads(answering.readline())

        try:
            yield ask
        finally:
            process.terminate()


__all__ = ["STREAMS", "UNIT_SECONDS", "Measured", "SleepingProgram", "exact_sleeps", "measure"]
