"""What one answer cost, as the line under it says."""

from __future__ import annotations

from dataclasses import dataclass


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
