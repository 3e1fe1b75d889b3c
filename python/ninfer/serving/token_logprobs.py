"""Log-probabilities as protocols show them."""

from __future__ import annotations

import math
from typing import Any

import orjson

from ninfer.engine.output_session import TokenLogprob
from ninfer.frontend.tokenizer import Tokenizer

# JSON has no infinity; this is what clients of the protocol know for it.
_LEAST = -9999.0


def finite(logprob: float) -> float:
    return logprob if math.isfinite(logprob) else _LEAST


def token_text(tokenizer: Tokenizer, token_id: int) -> str:
    """The text of one token alone; a part of a character becomes U+FFFD."""
    return tokenizer.token_bytes(token_id).decode(errors="replace")


def chat_logprob(tokenizer: Tokenizer, chosen: TokenLogprob) -> dict[str, Any]:
    """A token and its alternatives, each with its exact bytes."""
    return {
        **_entry(tokenizer, chosen.token_id, chosen.logprob),
        "top_logprobs": [_entry(tokenizer, token_id, logprob) for token_id, logprob in chosen.top],
    }


def written(value: Any) -> orjson.Fragment:
    """A part of an answer, as it will be sent. A long answer is written part by part as it comes, since nothing else
    runs while the whole is."""
    return orjson.Fragment(orjson.dumps(value))


def _entry(tokenizer: Tokenizer, token_id: int, logprob: float) -> dict[str, Any]:
    content = tokenizer.token_bytes(token_id)
    return {
        "id": token_id,
        "token": content.decode(errors="replace"),
        "logprob": finite(logprob),
        "bytes": list(content),
    }
