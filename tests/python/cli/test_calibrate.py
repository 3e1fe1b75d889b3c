"""`ninfer calibrate` measures, says what it found, and keeps it where the server looks."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from ninfer.config.engine_options import EngineOptions
from ninfer.demo import HYBRID_DIRECTORY
from ninfer.economics.calibration import CalibrationFile
from ninfer.economics.generic_cost import generic_cost
from ninfer.engine.engine import load_model
from tests.fixtures.ninfer_command import run

DIRECTIONS = ("to_host", "to_device", "within_device")


@pytest.mark.parametrize("context", [128, 4096])
def test_what_was_measured_is_kept_for_this_machine_and_model(tmp_path: Path, context: int) -> None:
    sizes = ["--threads", "1", "--max-context", str(context), "--seconds", "1"]
    result = run("calibrate", "--demo", *sizes, environment={"NINFER_HOME": str(tmp_path)})
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    assert "us per token" in result.stdout and str(tmp_path / "calibration.json") in result.stdout
    model = load_model(HYBRID_DIRECTORY, EngineOptions(threads=1, max_context=context), datetime.now)
    assert model.cost == generic_cost(model.files.config, 1)
    cost = load_model(
        HYBRID_DIRECTORY, EngineOptions(threads=1, max_context=context), datetime.now, None, CalibrationFile(tmp_path)
    ).cost
    assert cost.source == "calibrated" and cost.prefill != model.cost.prefill
    for name in DIRECTIONS:
        assert getattr(cost, name).ns_per_byte > 0
    # Twice the tokens never cost less, and something at all.
    prices = cost.prefill.of([0, 0, 0], [32, 64, 128])
    assert 0 < prices[0] <= prices[1] <= prices[2]
    kept = json.loads((tmp_path / "calibration.json").read_text())
    [residuals] = kept["residuals"].values()
    assert set(residuals) == {"prefill", *DIRECTIONS}


def test_without_a_place_to_keep_it_the_command_fails_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    sizes = ["--max-context", "128", "--seconds", "0"]
    result = run("calibrate", "--demo", *sizes, environment={"NINFER_HOME": str(file)})
    assert result.returncode == 1 and result.stderr.count("\n") == 1 and str(file) in result.stderr, result.stderr
