"""A stage runs its commands in order, stops at the first failure, and says what happened."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.runner.report import closing_lines
from tests.runner.settings import Settings
from tests.runner.stage import Command, Outcome, Stage, run_stage
from tests.runner.stages import STAGES, of_tier, with_needs


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(tmp_path, tier="ci", seed=4711, jobs=2)


def python(code: str, environment: Mapping[str, str | None] | None = None) -> Command:
    return Command([sys.executable, "-c", code], environment or {})


def stage_of(*commands: Command, limit_s: int = 60, needs: tuple[str, ...] = ()) -> Stage:
    return Stage("sample", "a stage of this test", lambda _: commands, needs=needs, limit_s=limit_s)


def test_output_of_every_command_is_in_the_log(settings: Settings) -> None:
    outcome = run_stage(stage_of(python("print('first')"), python("print('second')")), settings, {})
    log = (settings.logs / "sample.log").read_text(encoding="utf-8")
    assert outcome.passed
    assert log.splitlines()[1::2] == ["first", "second"]


def test_first_failure_ends_the_stage_and_prints_the_tail(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = run_stage(stage_of(python("print('broken'); exit(3)"), python("print('later')")), settings, {})
    printed = capsys.readouterr().out
    assert not outcome.passed
    assert outcome.remark.startswith("exit code 3")
    assert "broken" in printed
    assert "later" not in printed


def test_time_limit_ends_the_command_and_what_it_started(settings: Settings, tmp_path: Path) -> None:
    grandchild = "import time; time.sleep(3); open('late', 'w')"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {grandchild!r}])"
    outcome = run_stage(stage_of(python(child), limit_s=1), settings, {})
    assert outcome.remark == "over its time limit"
    assert outcome.seconds < 3
    time.sleep(3 - outcome.seconds + 0.5)
    assert not (tmp_path / "late").exists()


def test_undecided_is_reported_and_does_not_fail(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    undecided = Command([sys.executable, "-c", "print('too busy'); exit(75)"], undecided_code=75)
    outcome = run_stage(stage_of(undecided, python("print('later')")), settings, {})
    printed = capsys.readouterr().out
    assert outcome.passed
    assert outcome.remark.startswith("UNDECIDED: ")
    assert "too busy" in printed and "later" in printed
    failed = Command([sys.executable, "-c", "exit(1)"], undecided_code=75)
    assert not run_stage(stage_of(failed), settings, {}).passed
    assert not run_stage(stage_of(python("exit(75)")), settings, {}).passed


def test_the_simulator_and_benches_run_in_the_long_tier_alone(settings: Settings) -> None:
    names = {tier: [stage.name for stage in of_tier(tier)] for tier in ("ci", "long")}
    only_long = [name for name in names["long"] if name not in names["ci"]]
    assert only_long == ["sim", "mutations", "overhead", "admission", "captures", "peers"]
    assert set(names["ci"]) < set(names["long"]) == {stage.name for stage in STAGES}


@pytest.mark.parametrize(
    ("name", "script", "option"),
    [
        ("overhead", "engine/round_overhead.py", "--rounds"),
        ("admission", "serving/admission.py", "--requests"),
        ("captures", "engine/capture_cost.py", "--turns"),
        ("peers", "peers/llama_cpp.py", "--quick"),
    ],
)
def test_a_bench_on_a_busy_machine_decides_nothing(settings: Settings, name: str, script: str, option: str) -> None:
    (stage,) = (stage for stage in STAGES if stage.name == name)
    (command,) = stage.commands(settings)
    assert command.arguments[1:3] == [str(settings.root / "bench" / script), option]
    # Read, not imported: the bench needs the installed package, this test must not.
    bench = (Path(__file__).resolve().parents[2] / "bench" / script).read_text(encoding="utf-8")
    assert f'EXIT_CODES = {{"PASS": 0, "FAIL": 1, "INVALID": {command.undecided_code}}}' in bench


def test_benches_are_compiled_by_the_build_stage(settings: Settings) -> None:
    configured = {}
    for stage in STAGES:
        if stage.name in ("build", "asan", "tsan"):
            configured[stage.name] = "-DNINFER_BENCHES=ON" in stage.commands(settings)[0].arguments
    assert configured == {"build": True, "asan": False, "tsan": False}


def test_missing_program_is_a_failure_not_a_crash(settings: Settings) -> None:
    outcome = run_stage(stage_of(Command(["/no/such/program"])), settings, {})
    assert not outcome.passed
    assert "/no/such/program" in outcome.remark


def test_stage_whose_need_failed_does_not_run(settings: Settings) -> None:
    stage = stage_of(python("open('ran', 'w')"), needs=("build",))
    outcome = run_stage(stage, settings, {"build": Outcome(False, 1.0)})
    assert outcome == Outcome(False, 0.0, "not run: build failed")
    assert not (settings.root / "ran").exists()


def test_seed_reaches_the_command_and_none_removes_a_variable(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNWANTED", "1")
    code = "import os; assert os.environ['NINFER_TEST_SEED'] == '4711' and 'UNWANTED' not in os.environ"
    assert run_stage(stage_of(python(code, {"UNWANTED": None})), settings, {}).passed


def test_needs_come_along_in_order() -> None:
    assert [stage.name for stage in with_needs(["tidy-built"])] == ["package", "build", "tidy-built"]
    assert with_needs([stage.name for stage in STAGES]) == list(STAGES)


def test_closing_line_counts() -> None:
    lines = closing_lines({"a": Outcome(True, 1.0), "b": Outcome(False, 2.5, "exit code 1")})
    assert lines[-1] == "1 passed, 1 failed"
    assert "total               3.5" in lines
