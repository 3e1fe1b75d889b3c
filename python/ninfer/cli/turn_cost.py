"""What one answer cost, as the line under it says."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

# Computing so many again takes no time that anybody notices.
_FEW_TOKENS = 16


@dataclass(frozen=True)
class TurnCost:
    """Tokens, and tokens per second where somebody measured them. computed: those of the prompt that no cache had.
    origin: from where the cached ones came; shortfall: why there are no more. Both may be empty."""

    prompt_tokens: int
    cached: int
    computed: int
    answer_tokens: int
    finish_reason: str
    prompt_rate: float | None = None
    answer_rate: float | None = None
    origin: str = ""
    shortfall: str = ""

    @classmethod
    def reported(cls, report: Mapping[str, Mapping[str, Any]], finish_reason: str) -> TurnCost:
        """report: the fields `usage`, `timings` and `reuse` of an answer, each of which may lack anything."""
        usage, timings, reuse = (report.get(name) or {} for name in ("usage", "timings", "reuse"))
        prompt = _count(usage, "prompt_tokens")
        cached = _count(usage.get("prompt_tokens_details") or {}, "cached_tokens")
        return cls(
            prompt_tokens=prompt,
            cached=cached,
            computed=_count(timings, "prompt_n") if "prompt_n" in timings else prompt - cached,
            answer_tokens=_count(usage, "completion_tokens"),
            finish_reason=finish_reason,
            prompt_rate=_reported_rate(timings, "prompt_n", "prompt_ms"),
            answer_rate=_reported_rate(timings, "predicted_n", "predicted_ms"),
            origin=_origin(reuse),
            shortfall=_shortfall(reuse),
        )

    def line(self) -> str:
        told = "; ".join(filter(None, (self.origin, self.shortfall)))
        cached = f"{self.cached} ({told})" if told else f"{self.cached}"
        prompt = f"prompt {self.prompt_tokens} tokens, cached {cached}, computed {self.computed}"
        answer = f"answer {self.answer_tokens}{_rate(self.answer_rate)}"
        return f"[{prompt}{_rate(self.prompt_rate)}; {answer}; {self.finish_reason}]"


def per_second(count: int, milliseconds: float) -> float | None:
    return count / milliseconds * 1e3 if count > 0 and milliseconds > 0 else None


def _rate(rate: float | None) -> str:
    return "" if rate is None else f" at {rate:.0f}/s"


def _origin(reuse: Mapping[str, Any]) -> str:
    source = reuse.get("source")
    return f"{source}, {reuse.get('path')}" if source and source != "root" else ""


def _shortfall(reuse: Mapping[str, Any]) -> str:
    """Why there is not more; no words for a prompt of which nothing is kept, or a few tokens."""
    reason, shared = reuse.get("reason"), _count(reuse, "shared_tokens")
    if shared:
        return f"{shared} are kept, but {reason}" if shared - _count(reuse, "frontier") > _FEW_TOKENS else ""
    return "" if reason in (None, "no_match") else str(reason)


def _count(values: Mapping[str, Any], name: str) -> int:
    with suppress(TypeError, ValueError):
        return int(values.get(name) or 0)
    return 0


def _reported_rate(timings: Mapping[str, Any], count: str, milliseconds: str) -> float | None:
    with suppress(TypeError, ValueError):
        return per_second(int(timings.get(count) or 0), float(timings.get(milliseconds) or 0.0))
    return None
