"""One request's output: which sampler picks the next token, what a token adds, and the reason the output ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ninfer import native
from ninfer.engine.generation_plan import GenerationPlan
from ninfer.engine.sampling_params import native_sampler
from ninfer.engine.text_stream import TextStream
from ninfer.frontend.canonical_output import CanonicalOutput
from ninfer.frontend.tokenizer import Tokenizer

FinishReason = Literal["stop", "length"]
# What to say of a sampled token with id -1.
NOTHING_TO_PICK = "the model gives no allowed token a finite logit"


@dataclass(frozen=True)
class TokenLogprob:
    """Log-probability of a chosen token, and the most probable ones beside it, best first: (token id, logprob)."""

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class GenerationStep:
    """What one step adds: the token it computed, and text that no later token can change (perhaps none)."""

    token_id: int
    text: str
    logprob: TokenLogprob | None
    finish_reason: FinishReason | None


class OutputSession:
    """Life: `sampler`, then `push` of the token it picked, until a step has a finish reason.

    The first sampler is there before anything computes, so that a request that allows no token is refused in time.
    """

    def __init__(self, tokenizer: Tokenizer, plan: GenerationPlan, vocab_size: int) -> None:
        params = plan.params
        self._text = TextStream(tokenizer, params.stop)
        self._canonical = CanonicalOutput(tokenizer, self._text.hidden_ids, plan.prompt)
        self._shown_bytes = 0
        self._end_ids = plan.end_ids
        self._max_tokens = plan.max_tokens
        self._min_tokens = params.min_tokens
        self._wants_logprobs = params.logprobs is not None
        self._sampler = native_sampler(params, vocab_size, plan.never_ids)
        # Before min_tokens, an end token is as impossible as one that does not exist.
        early = plan.never_ids | plan.end_ids
        self._early_sampler = native_sampler(params, vocab_size, early) if params.min_tokens > 0 else self._sampler
        self.token_count = 0

    @property
    def sampler(self) -> native.Sampler:
        """How the next token is picked."""
        return self._early_sampler if self.token_count < self._min_tokens else self._sampler

    @property
    def stop_string(self) -> str | None:
        """The stop string that ended the output, if one did."""
        return self._text.stop_string

    @property
    def canonical_tokens(self) -> int:
        """How many of the output's tokens a prompt that holds its text has again, from the first on; the token that
        ended it is none of them. For an output that has ended; takes as long as a push."""
        return self._canonical.count(None if self.stop_string is None else self._shown_bytes)

    def push(self, token: native.SampledToken) -> GenerationStep:
        """What the token adds. The caller has it committed before it shows any of this."""
        token_id: int = token.id
        self.token_count += 1
        ended = token_id in self._end_ids
        if not ended:
            self._canonical.push(token_id)
        piece = self._text.finish() if ended else self._text.push(token_id)
        finish: FinishReason | None = "stop" if ended or self._text.stopped else None
        if finish is None and self.token_count >= self._max_tokens:
            piece += self._text.finish()
            # What was held back may have completed a stop string.
            finish = "stop" if self._text.stopped else "length"
        self._shown_bytes += len(piece.encode())
        logprob = None
        if self._wants_logprobs:
            logprob = TokenLogprob(token_id, token.logprob, tuple(token.top_logprobs))
        return GenerationStep(token_id, piece, logprob, finish)
