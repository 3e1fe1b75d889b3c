"""The checks that a mutant has to get past, the cheapest first."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

# A mutant that loops is killed by this many times what the sound program takes, and never by a slow machine.
_PATIENCE = 20
_LEAST_PATIENCE_S = 20.0
_MOST_MEMORY_BYTES = 6 << 30
_MOST_OUTPUT_BYTES = 64 << 20
_MOST_WORDS_BYTES = 64 << 10
_OVER_TIME = 1000


@dataclass(frozen=True)
class Killer:
    """One program of the build. `seconds` is what it takes without a mutant; 0: not measured yet."""

    name: str
    target: str
    folder: str
    arguments: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def limit_s(self) -> float:
        return max(_LEAST_PATIENCE_S, _PATIENCE * self.seconds)

    def command(self, build: Path) -> list[str]:
        return [str(build / self.folder / self.target), *self.arguments]


@dataclass(frozen=True)
class Verdict:
    """`killed_by` is the name of a killer, or empty: the mutant has survived."""

    killed_by: str
    how: str
    seconds: float

    @property
    def killed(self) -> bool:
        return self.killed_by != ""


def all_killers(root: Path, seed: int) -> list[Killer]:
    """Every C++ test of the stores, transactions and the program, and the simulator; nothing that needs a file."""
    folders = [f"tests/cpp/{name}" for name in ("state", "transaction", "program")]
    tests = [(folder, path.stem) for folder in folders for path in sorted((root / folder).glob("*_test.cpp"))]
    killers = [Killer(name, name, folder) for folder, name in tests]
    for scope in ("stores", "all"):
        for steps, offset in ((20_000, 0), (20_000, 1), (200_000, 2)):
            run = f"--scope {scope} --steps {steps} --seed {seed + offset}"
            killers.append(Killer(f"ninfer_sim {run}", "ninfer_sim", "tests/sim", tuple(run.split())))
    return killers


def measured(killers: Sequence[Killer], build: Path, seed: int) -> list[Killer]:
    """The killers with their times, the shortest first. Each must pass without a mutant."""
    timed = []
    for killer in killers:
        code, how, seconds = run_once(killer, build, seed, mutant=0, limit_s=1200.0)
        assert code == 0, f"{killer.name} fails without a mutant: {how}"
        timed.append(Killer(killer.name, killer.target, killer.folder, killer.arguments, seconds))
    return sorted(timed, key=lambda killer: killer.seconds)


def judge(killers: Sequence[Killer], build: Path, seed: int, mutant: int, ready: Callable[[Killer], None]) -> Verdict:
    """Runs killers until one kills. `ready` builds what the next one needs."""
    start = time.monotonic()
    for killer in killers:
        ready(killer)
        code, how, _ = run_once(killer, build, seed, mutant, killer.limit_s)
        if code != 0:
            return Verdict(killer.name, how, time.monotonic() - start)
    return Verdict("", "", time.monotonic() - start)


def run_once(killer: Killer, build: Path, seed: int, mutant: int, limit_s: float) -> tuple[int, str, float]:
    """Exit code, the last words, seconds."""
    environment = {**os.environ, "NINFER_MUTANT": str(mutant), "NINFER_TEST_SEED": str(seed)}
    start = time.monotonic()
    with tempfile.TemporaryFile() as words:
        process = subprocess.Popen(
            killer.command(build),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=words,
            start_new_session=True,
        )
        try:
            _limit(process.pid)
            code = process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            code = _OVER_TIME
        finally:
            _end(process)
        words.seek(0)
        said = words.read(_MOST_WORDS_BYTES).decode("utf-8", errors="replace").replace(f"{build.parent}/tree/", "")
    seconds = time.monotonic() - start
    if code == _OVER_TIME:
        return code, f"over {limit_s:.0f} s", seconds
    return code, f"{_reason(code)} {_last_words(said)}".strip() if code != 0 else "", seconds


def _limit(pid: int) -> None:
    """A mutant that takes all memory must not take the machine's."""
    try:
        resource.prlimit(pid, resource.RLIMIT_AS, (_MOST_MEMORY_BYTES, _MOST_MEMORY_BYTES))
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (_MOST_OUTPUT_BYTES, _MOST_OUTPUT_BYTES))
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
    except ProcessLookupError:
        return


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def _reason(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit {code}"


def _last_words(said: str) -> str:
    lines = [line for line in said.splitlines() if line.strip()]
    told = next((line for line in lines if "ninfer: " in line or "expected" in line), lines[-1] if lines else "")
    return told.rpartition("ninfer: ")[2].strip()[:160]
