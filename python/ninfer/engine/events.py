"""What happens to a request, as the engine tells it: the last event is exactly one of Finished, Cancelled, Failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from ninfer.engine.output_session import FinishReason, TokenLogprob
from ninfer.engine.reuse_report import ReuseReport


@dataclass(frozen=True, slots=True)
class PrefillProgress:
    """How much of the prompt is done, in tokens; only for a request that asked for it. cached: the reused ones of those
    that are done."""

    processed: int
    total: int
    cached: int = 0


@dataclass(frozen=True, slots=True)
class TokenEvent:
    """One computed token, an end token too, and the text that became certain with it (perhaps none)."""

    token_id: int
    text: str
    logprob: TokenLogprob | None


@dataclass(frozen=True, slots=True)
class RequestTimings:
    """prompt_n: prompt tokens the native steps computed, by their own counter; cache_n: those they did not have to.

    queue_ms: from the request's arrival to admission; prompt_ms: from there to the first token; predicted_ms: from
    there to the last. planning_us: how long the engine looked for the best start, in all attempts. max_tokens: the
    limit of the output after it was lowered to what the context holds.
    """

    prompt_n: int
    cache_n: int
    prompt_ms: float
    predicted_n: int
    predicted_ms: float
    queue_ms: float
    planning_us: int
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The output is complete. completion_tokens counts every computed token, the end token too. stop_string: the one
    that ended it, if one did. reuse: from where the prompt went on."""

    finish_reason: FinishReason
    timings: RequestTimings
    prompt_tokens: int
    completion_tokens: int
    stop_string: str | None = None
    reuse: ReuseReport = field(default_factory=ReuseReport)


DEADLINE = "deadline"
"""Why a request was cancelled that took longer than it was allowed to."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Nothing more will come because somebody said so: the client left, the deadline passed, the engine stops."""

    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """Nothing more will come because something broke: the engine (then it is unhealthy), or only this request, if the
    model gives none of its allowed tokens a finite logit (`no_finite_logit`)."""

    message: str
    code: Literal["engine_failed", "no_finite_logit"] = "engine_failed"


EngineEvent = PrefillProgress | TokenEvent | Finished | Cancelled | Failed

# Takes one request's new events. Called on the engine's thread, so it must not block.
Deliver = Callable[[list[EngineEvent]], None]
# Takes one round's new events of all requests by request id. Called on the engine's thread, so it must not block.
HandOver = Callable[[list[tuple[int, list[EngineEvent]]]], None]
