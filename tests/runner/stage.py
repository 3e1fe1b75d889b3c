"""One stage of the checks: its commands, one after the other, into one log.

1. A stage whose needs did not pass is not started and counts as failed.
2. Its commands run in order; the first that fails, or the time limit, ends it.
3. The log stays in build/logs; its end is printed when the stage failed or could not decide.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests.runner.settings import TIERS, Settings

TAIL_LINES = 80


@dataclass(frozen=True)
class Command:
    """A program and what it finds in its environment besides the runner's own. A value of None removes a variable.

    undecided_code: the exit code that says the machine was unfit to decide; it is reported and does not fail the stage.
    """

    arguments: Sequence[str]
    environment: Mapping[str, str | None] = field(default_factory=dict)
    undecided_code: int | None = None


@dataclass(frozen=True)
class Stage:
    """`commands` is asked when the stage starts, so it may look at what earlier stages built.

    tiers: the tiers of which it is a part; named with --only it runs in any.
    """

    name: str
    purpose: str
    commands: Callable[[Settings], Sequence[Command]]
    needs: tuple[str, ...] = ()
    limit_s: int = 1200
    tiers: tuple[str, ...] = TIERS


@dataclass(frozen=True)
class Outcome:
    passed: bool
    seconds: float
    remark: str = ""


def run_stage(stage: Stage, settings: Settings, earlier: Mapping[str, Outcome]) -> Outcome:
    blocked = [need for need in stage.needs if not earlier[need].passed]
    if blocked:
        outcome = Outcome(False, 0.0, f"not run: {', '.join(blocked)} failed")
    else:
        outcome = _run_commands(stage, settings)
    word = "passed" if outcome.passed else "FAILED"
    print(f"{stage.name:14} {word} {outcome.seconds:8.1f} s  {outcome.remark}".rstrip(), flush=True)
    return outcome


def _run_commands(stage: Stage, settings: Settings) -> Outcome:
    start = time.monotonic()
    settings.logs.mkdir(parents=True, exist_ok=True)
    path = settings.logs / f"{stage.name}.log"
    failure = ""
    undecided = []
    with path.open("wb") as log:
        try:
            for command in stage.commands(settings):
                left_s = stage.limit_s - (time.monotonic() - start)
                code = _run_command(command, settings, log, left_s)
                if code is not None and code == command.undecided_code:
                    undecided.append(f"UNDECIDED: {_shown(command)}")
                elif code != 0:
                    failure = "over its time limit" if code is None else f"exit code {code}: {_shown(command)}"
                    break
        except OSError as error:  # a program or a folder that the stage needs is not there
            failure = str(error)
    outcome = Outcome(not failure, time.monotonic() - start, failure or "; ".join(undecided))
    if outcome.remark:
        _print_tail(path, settings)
    return outcome


def _run_command(command: Command, settings: Settings, log: IO[bytes], left_s: float) -> int | None:
    """The command's exit code; None if its time was up."""
    log.write(f"$ {' '.join(command.arguments)}\n".encode())
    log.flush()
    process = subprocess.Popen(
        command.arguments,
        cwd=settings.root,
        env=_environment(command, settings),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        return process.wait(timeout=max(left_s, 1.0))
    except subprocess.TimeoutExpired:
        return None
    finally:
        _end_group(process)


def _shown(command: Command) -> str:
    return " ".join(command.arguments)[:80]


def _environment(command: Command, settings: Settings) -> dict[str, str]:
    changed = {**os.environ, "NINFER_TEST_SEED": str(settings.seed), **command.environment}
    return {name: value for name, value in changed.items() if value is not None}


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Ends what the command left running, so that a hung test cannot outlive its stage."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def _print_tail(path: Path, settings: Settings) -> None:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    print(f"---- {path.relative_to(settings.root)}, last {TAIL_LINES} lines")
    print("\n".join(lines[-TAIL_LINES:]))
    print("----", flush=True)
