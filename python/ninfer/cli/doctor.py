"""`ninfer doctor`: what this machine offers, and whether a model runs on it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from ninfer.cli.flag_groups import count, flag
from ninfer.cli.local_conversation import LocalConversation
from ninfer.cli.local_engine import LocalEngine
from ninfer.cli.machine_report import machine_report
from ninfer.cli.terminal_text import one_line
from ninfer.config.engine_options import EngineOptions
from ninfer.demo import HYBRID_DIRECTORY
from ninfer.frontend.reasoning_parser import ReasoningDelta

# What the demo model says on every machine that computes rightly.
_GREETING = "hello."
_ANSWER = "hello! how can i help you?"
_SMALL = EngineOptions(max_context=256, kv_capacity=256, context_cache=False)


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
    host: Annotated[str, flag("host", "Address that a server would listen on.")] = "127.0.0.1",
    port: Annotated[int, count("port", "Port that a server would listen on.")] = 8080,
) -> None:
    """Show what this machine offers and whether models run on it; exit status 1 if none could."""
    report = machine_report(os.environ, host, port)
    report["model_check"] = _model_check()
    if as_json:
        typer.echo(json.dumps(report, indent=2))
    else:
        for line in _lines(report):
            typer.echo(line)
    raise typer.Exit(0 if report["model_check"]["works"] else 1)


def _model_check() -> dict[str, Any]:
    """Loads the demo model of the package and lets it answer: what it takes to run a model is then all there."""
    start = time.monotonic()
    try:
        with LocalEngine.load(HYBRID_DIRECTORY, _SMALL) as engine:
            said = sum(LocalConversation(engine).say(_GREETING), ReasoningDelta()).content
    except Exception as error:  # whatever it is, it is the answer
        return {"works": False, "reason": one_line(f"{type(error).__name__}: {error}")}
    if said != _ANSWER:
        return {"works": False, "reason": f"the demo model was expected to say {_ANSWER!r}, it said {said!r}"}
    return {"works": True, "seconds": round(time.monotonic() - start, 3)}


def _lines(report: dict[str, dict[str, Any]]) -> Iterator[str]:
    for section, facts in report.items():
        yield section.replace("_", " ")
        width = max(map(len, facts))
        for name, value in facts.items():
            yield f"  {_words(name):{width}}  {_shown(name, value)}"


def _words(name: str) -> str:
    return name.removesuffix("_bytes").replace("_", " ")


def _shown(name: str, value: Any) -> str:
    if name.endswith("_bytes") and value is not None:
        return f"{value / 2**20:.0f} MiB"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return one_line(", ".join(map(str, value))) or "none"
    return "none" if value is None else one_line(str(value))
