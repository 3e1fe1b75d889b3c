"""Sampling fields of a body over the model's defaults."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ninfer.engine.sampling_params import SamplingParams
from ninfer.errors import RequestError
from ninfer.serving.http_errors import bad_field
from ninfer.serving.wire import MAX_BIASES, MAX_STOP_CHARACTERS, MAX_STOPS, GenerationFields

_SAME_NAME = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
    "min_tokens",
    "ignore_eos",
)
_ALL_TOKENS = -1


def sampling_of(fields: GenerationFields, defaults: SamplingParams, **more: Any) -> SamplingParams:
    """`more`: fields of SamplingParams that the endpoint spells in its own way; None means absent.

    400 or RequestError for a value out of range.
    """
    given = {name: getattr(fields, name) for name in _SAME_NAME}
    # As other servers have it, although the sampler could be seeded with it.
    given["seed"] = None if fields.seed == -1 else fields.seed
    given["repetition_penalty"] = _repetition_penalty(fields)
    given["stop"] = None if fields.stop is None else _stops(fields.stop)
    given["stop_token_ids"] = None if fields.stop_token_ids is None else tuple(fields.stop_token_ids)
    given["logit_bias"] = None if fields.logit_bias is None else _biases(fields.logit_bias)
    given.update(more)
    try:
        params = replace(defaults, **{name: value for name, value in given.items() if value is not None})
    except RequestError as error:
        if error.param == "repetition_penalty" and fields.repetition_penalty is None:
            raise bad_field("repeat_penalty", str(error).partition(": ")[2]) from None
        raise
    if fields.repeat_last_n not in (None, _ALL_TOKENS) and params.needs_counts:
        raise bad_field("repeat_last_n", f"with penalties only {_ALL_TOKENS}, all tokens, is supported")
    return params


def _repetition_penalty(fields: GenerationFields) -> float | None:
    """Two projects named it differently; both names mean the same here."""
    ours, theirs = fields.repetition_penalty, fields.repeat_penalty
    if ours is not None and theirs is not None and ours != theirs:
        raise bad_field("repeat_penalty", "says something else than repetition_penalty")
    return theirs if ours is None else ours


def _stops(given: str | list[str]) -> tuple[str, ...]:
    stops = (given,) if isinstance(given, str) else tuple(given)
    if len(stops) > MAX_STOPS:
        raise bad_field("stop", f"at most {MAX_STOPS} strings, found {len(stops)}")
    longest = max(map(len, stops), default=0)
    if longest > MAX_STOP_CHARACTERS:
        raise bad_field("stop", f"at most {MAX_STOP_CHARACTERS} characters in a string, found {longest}")
    return stops


def _biases(given: Mapping[str, Any]) -> dict[int, float]:
    if len(given) > MAX_BIASES:
        raise bad_field("logit_bias", f"at most {MAX_BIASES} biases, found {len(given)}")
    biases = {}
    for name, value in given.items():
        if not (name.isascii() and name.isdigit() and len(name) <= 10):
            raise bad_field("logit_bias", f"{name[:40]!r} is no token id")
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise bad_field("logit_bias", f"the bias of token {name} must be a number")
        biases[int(name)] = float(value)
    return biases
