"""One line on the console per request."""

from __future__ import annotations

import logging

from ninfer.engine.events import Cancelled, Failed, Finished
from ninfer.serving.accounting import accounting
from ninfer.serving.request_record import RequestRecord

_LOG = logging.getLogger("ninfer.requests")
# Asked every few seconds by whoever watches the server.
_QUIET = frozenset({"/health", "/v1/health"})


def log_to_console(record: RequestRecord) -> None:
    """A successful health check is only seen at the level debug."""
    quiet = record.endpoint in _QUIET and record.final_status == 200
    _LOG.log(logging.DEBUG if quiet else logging.INFO, "%s", console_line(record))


def console_line(record: RequestRecord) -> str:
    head = f"{record.method} {record.endpoint} {record.final_status}"
    return f"{head} {_course(record)} [{record.id}]"


def _course(record: RequestRecord) -> str:
    outcome, generation = record.outcome, record.generation
    after = f"after {record.seconds:.3f} s"
    if isinstance(outcome, Finished):
        return _finished(outcome)
    digest = None if generation is None else generation.digest
    prompt = "" if digest is None else f"prompt {digest.tokens} tokens; "
    if record.client_left:
        return f"{prompt}the client left {after}"
    if isinstance(outcome, Cancelled):
        return f"{prompt}cancelled: {outcome.reason} {after}"
    if isinstance(outcome, Failed):
        return f"{prompt}failed: {outcome.message} {after}"
    return f"{prompt}{after}"


def _finished(outcome: Finished) -> str:
    timings = accounting(outcome)["timings"]
    return (
        f"prompt {outcome.prompt_tokens} tokens, cached {timings['cache_n']}, computed {timings['prompt_n']}"
        f"{_rate(timings['prompt_per_second'])}; answer {timings['predicted_n']} tokens"
        f"{_rate(timings['predicted_per_second'])}; queued {timings['queue_ms']:.0f} ms; {outcome.finish_reason}"
    )


def _rate(per_second: float | None) -> str:
    return "" if per_second is None else f" at {per_second:.1f} tok/s"
