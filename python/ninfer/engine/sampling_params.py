"""What one request asks of the sampler and when it ends."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ninfer import native
from ninfer.errors import RequestError
from ninfer.weights.model_files import GenerationDefaults

MAX_LOGPROBS = 20
Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class SamplingParams:
    """The order of application is that of cpp/ops/sampling.h; ranges are checked here.

    temperature 0 or top_p 0: the best token. seed None: a fresh one per request. stop: strings that end the output and
    are not part of it. logprobs: None for none, else how many of the most probable tokens (0..20) are reported beside
    the chosen one. token_mask: bool [vocab], True = allowed.
    """

    max_tokens: int | None = None
    min_tokens: int = 0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    logprobs: int | None = None
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    token_mask: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        _check_int("max_tokens", self.max_tokens, 0, None)
        _check_int("min_tokens", self.min_tokens, 0, None)
        _check_range("temperature", self.temperature, 0.0, 1e4)
        _check_range("top_p", self.top_p, 0.0, 1.0)
        _check_range("min_p", self.min_p, 0.0, 1.0)
        _check_int("top_k", self.top_k, None, None)
        _check_range("presence_penalty", self.presence_penalty, -2.0, 2.0)
        _check_range("frequency_penalty", self.frequency_penalty, -2.0, 2.0)
        _check_range("repetition_penalty", self.repetition_penalty, 1e-4, 1e4)
        _check_int("seed", self.seed, -(2**63), 2**64 - 1)
        _check_int("logprobs", self.logprobs, 0, MAX_LOGPROBS)
        for text in self.stop:
            _check_text("stop", text)
        for token in self.stop_token_ids:
            _check_int("stop_token_ids", token, 0, None)
        for token, value in self.logit_bias.items():
            _check_int("logit_bias", token, 0, None)
            _check_range("logit_bias", value, -math.inf, math.inf)
        if self.token_mask is not None and getattr(self.token_mask, "dtype", None) != np.bool_:
            raise RequestError("token_mask", "expected an array of bool")

    @property
    def needs_counts(self) -> bool:
        """Whether a penalty is on, so that the program has to count tokens."""
        return (self.presence_penalty, self.frequency_penalty, self.repetition_penalty) != (0.0, 0.0, 1.0)

    def seeded(self) -> SamplingParams:
        """The same with a seed: the given one, else a fresh random one."""
        return self if self.seed is not None else replace(self, seed=secrets.randbits(63))


def default_sampling(defaults: GenerationDefaults) -> SamplingParams:
    """What the model's author recommends: greedy where sampling is turned off, else their values over neutral ones."""
    if defaults.do_sample is False:
        return SamplingParams(temperature=0.0)
    recommended = (defaults.temperature, defaults.top_p, defaults.top_k, defaults.min_p, defaults.repetition_penalty)
    if all(value is None for value in recommended):
        # The values that llama.cpp's users know.
        return SamplingParams(temperature=0.8, top_k=40, top_p=0.95, min_p=0.05)
    neutral = SamplingParams()
    return replace(
        neutral,
        temperature=_first(defaults.temperature, neutral.temperature),
        top_p=_first(defaults.top_p, neutral.top_p),
        top_k=_first(defaults.top_k, neutral.top_k),
        min_p=_first(defaults.min_p, neutral.min_p),
        repetition_penalty=_first(defaults.repetition_penalty, neutral.repetition_penalty),
    )


def _first(recommended: Number | None, ours: Number) -> Number:
    return ours if recommended is None else recommended


def native_sampler(params: SamplingParams, vocab_size: int, forbidden: Set[int]) -> native.Sampler:
    """The core's form of `params`, with `forbidden` ids never picked.

    Raises RequestError if nothing is left to pick. Ids were checked against the vocabulary before.
    """
    assert params.seed is not None, "a request is seeded before it samples"
    sampler = native.Sampler()
    sampler.temperature = params.temperature
    sampler.top_p = params.top_p
    sampler.min_p = params.min_p
    sampler.top_k = max(0, min(params.top_k, vocab_size))
    sampler.presence_penalty = params.presence_penalty
    sampler.frequency_penalty = params.frequency_penalty
    sampler.repetition_penalty = params.repetition_penalty
    sampler.seed = params.seed % 2**64
    sampler.logprobs = -1 if params.logprobs is None else params.logprobs
    sampler.set_bias([(int(token), float(value)) for token, value in params.logit_bias.items()])
    sampler.set_mask(_mask_words(params, vocab_size, forbidden))
    return sampler


def check_token_ids(params: SamplingParams, vocab_size: int, valid: Callable[[int], bool]) -> None:
    """Raises RequestError for a biased or stopping id that is no token, or a mask of another vocabulary.

    vocab_size: rows of the embedding; `valid` knows which of them are tokens.
    """
    for name, tokens in (("logit_bias", params.logit_bias), ("stop_token_ids", params.stop_token_ids)):
        for token in tokens:
            if not valid(int(token)):
                raise RequestError(name, f"{token} is no token id of this model")
    if params.token_mask is not None and params.token_mask.shape != (vocab_size,):
        raise RequestError("token_mask", f"expected {vocab_size} values, found {params.token_mask.shape}")


def _mask_words(params: SamplingParams, vocab_size: int, forbidden: Set[int]) -> NDArray[np.uint32]:
    impossible = [token for token, value in params.logit_bias.items() if value == -math.inf]
    if params.token_mask is None and not forbidden and not impossible:
        return np.zeros(0, np.uint32)
    allowed = np.zeros(-(-vocab_size // 32) * 32, np.bool_)
    allowed[:vocab_size] = True if params.token_mask is None else params.token_mask
    allowed[list(forbidden)] = False
    allowed[impossible] = False
    if not allowed.any():
        raise RequestError("token_mask", "mask, bias and min_tokens together allow no token")
    return np.packbits(allowed, bitorder="little").view(np.uint32)


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise RequestError(name, f"expected strings that are not empty, found {value!r}")


def _check_range(name: str, value: object, least: float, most: float) -> None:
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not least <= float(value) <= most:  # type: ignore[arg-type]  # a number, as just checked
        raise RequestError(name, f"expected a number from {least:g} to {most:g}, found {value!r}")


def _check_int(name: str, value: object, least: int | None, most: int | None) -> None:
    if value is None:
        return
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if whole and _within(int(value), least, most):  # type: ignore[call-overload]  # a number, as just checked
        return
    bounds = f" from {least}" if least is not None else ""
    bounds += f" to {most}" if most is not None else ""
    raise RequestError(name, f"expected a whole number{bounds}, found {value!r}")


def _within(value: int, least: int | None, most: int | None) -> bool:
    return (least is None or value >= least) and (most is None or value <= most)
