"""`ninfer calibrate`: measures this machine with a model, so that the server knows what is worth keeping."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated

import typer

from ninfer.cli.engine_flags import EngineFlags
from ninfer.cli.flag_groups import with_flags
from ninfer.cli.load_with_progress import LoadProgress
from ninfer.cli.model_choice import DemoOption, ModelArgument, model_path
from ninfer.config.engine_options import EngineOptions
from ninfer.config.store_location import cache_directory
from ninfer.economics.calibration import Calibration, CalibrationFile
from ninfer.engine.engine import load_model
from ninfer.engine.machine import machine_key
from ninfer.engine.measurement import Measurement

_DIRECTIONS = {"to_host": "to Host", "to_device": "to Device", "within_device": "within Device"}


@with_flags(engine_flags=EngineFlags)
def calibrate(
    model: ModelArgument = None,
    demo: DemoOption = None,
    seconds: Annotated[float, typer.Option(min=0.0, help="About how long prompts are computed for it.")] = 20.0,
    *,
    engine_flags: EngineFlags,
) -> None:
    """Measure what copying and computing take here, and keep it for servers with this model."""
    options = EngineOptions.from_mapping({**engine_flags.as_options(), "context_cache": True})
    with LoadProgress() as bar:
        loaded = load_model(model_path(model, demo), options, datetime.now, bar.show)
    found = Measurement(loaded, machine_key(loaded.capacity), seconds).calibrate()
    file = CalibrationFile(cache_directory(os.environ))
    file.keep(found)
    for line in _lines(found):
        typer.echo(line)
    typer.echo(f"kept in {file.path}")


def _lines(found: Calibration) -> Iterator[str]:
    yield found.machine.text()
    for name, words in _DIRECTIONS.items():
        cost = getattr(found.cost, name)
        rate = 1 / cost.ns_per_byte if cost.ns_per_byte else float("inf")
        yield (
            f"  {words:14} {rate:7.1f} GB/s, {cost.operation_ns / 1e3:.1f} us per piece, {cost.batch_ns / 1e3:.1f} us"
            f" per batch{_error(found, name)}"
        )
    prefill = found.cost.prefill
    yield (
        f"  {'prefill':14} {prefill.token_ns / 1e3:7.1f} us per token, {prefill.pair_ns:.3f} ns per attention pair,"
        f" {prefill.pass_ns / 1e3:.1f} us per pass{_error(found, 'prefill')}"
    )


def _error(found: Calibration, name: str) -> str:
    residual = found.residuals[name]
    return f" (off by {residual.median:.0%}, at most {residual.largest:.0%})"
