"""What every answer says about its cost: usage, timings, reuse, and how far a prompt is."""

from __future__ import annotations

import time
from typing import Any

from ninfer.engine.events import Finished, PrefillProgress, RequestTimings
from ninfer.engine.reuse_report import ReuseReport


def accounting(event: Finished) -> dict[str, Any]:
    """The fields `usage`, `timings` and `reuse` of an answer.

    prompt_n + cache_n = prompt tokens, by the engine's own counter. Times in milliseconds.
    """
    return {"usage": usage(event), "timings": _timings(event.timings), "reuse": _reuse(event.reuse)}


def usage(event: Finished) -> dict[str, Any]:
    return {
        "prompt_tokens": event.prompt_tokens,
        "completion_tokens": event.completion_tokens,
        "total_tokens": event.prompt_tokens + event.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": event.timings.cache_n},
    }


def prompt_progress(event: PrefillProgress, started: float) -> dict[str, Any]:
    """The field `prompt_progress` of a stream. started: when the answer began, by time.monotonic."""
    elapsed_ms = round((time.monotonic() - started) * 1e3)
    return {"total": event.total, "cache": event.cached, "processed": event.processed, "time_ms": elapsed_ms}


def _timings(timings: RequestTimings) -> dict[str, Any]:
    return {
        "prompt_n": timings.prompt_n,
        "cache_n": timings.cache_n,
        "prompt_ms": timings.prompt_ms,
        "prompt_per_second": _per_second(timings.prompt_n, timings.prompt_ms),
        "predicted_n": timings.predicted_n,
        "predicted_ms": timings.predicted_ms,
        "predicted_per_second": _per_second(timings.predicted_n, timings.predicted_ms),
        "queue_ms": timings.queue_ms,
        "planning_us": timings.planning_us,
        "max_tokens": timings.max_tokens,
    }


def _reuse(report: ReuseReport) -> dict[str, Any]:
    """What is unknown, or needs no saying, is left out."""
    said: dict[str, Any] = {"source": report.source, "path": report.path or "root", "frontier": report.frontier}
    shortfall = report.shortfall
    if shortfall.shared_tokens is not None:
        said["shared_tokens"] = shortfall.shared_tokens
    if shortfall.divergence is not None:
        said["divergence"] = {"token": shortfall.divergence.token, "message": shortfall.divergence.message}
    if shortfall.reason is not None:
        said["reason"] = shortfall.reason
    return said


def _per_second(count: int, milliseconds: float) -> float | None:
    return count / milliseconds * 1e3 if milliseconds > 0 else None
