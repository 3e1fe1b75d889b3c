"""The requests of the load test, and what is compared of their answers."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

from tests.python.serving.event_stream import stream_chunks

PATHS = ("/v1/chat/completions", "/v1/completions", "/completion")
WORDS = [
    "one",
    "two",
    "three",
    "plus",
    "what",
    "is",
    "the",
    "a",
    "story",
    "about",
    "repeat",
    "reverse",
    "count",
    "to",
    "ten",
    "hello",
]
# Fields of an answer that say when or for whom it was computed.
_PASSING = {
    "id",
    "created",
    "object",
    "timings",
    "tokens_cached",
    "reuse",
    "index",
    "id_slot",
    "stop",
    "role",
    "system_fingerprint",
}


@dataclass(frozen=True)
class Asked:
    """One request; alone: what is compared of its answer when nothing runs beside it."""

    path: str
    body: dict[str, Any]


def random_request(dice: random.Random, number: int) -> Asked:
    """Every number has its own prompt. The first ones run long, so that a client that leaves finds them alive."""
    path = PATHS[number % len(PATHS)]
    body: dict[str, Any] = {
        "temperature": dice.choice([0.0, 0.8, 1.5]),
        "seed": dice.randrange(1 << 31),
        "top_k": dice.choice([0, 5, 40]),
        "top_p": dice.choice([1.0, 0.9]),
        "min_p": dice.choice([0.0, 0.05]),
        "repeat_penalty": dice.choice([1.0, 1.3]),
        "presence_penalty": dice.choice([0.0, 0.7]),
        "frequency_penalty": dice.choice([0.0, -0.4]),
        "ignore_eos": number < 4 or dice.random() < 0.5,
        "min_tokens": dice.choice([0, 5]),
        "cache_prompt": dice.random() < 0.5,
        "max_tokens": 250 if number < 4 else dice.choice([1, 2, 8, 30, 60]),
    }
    if dice.random() < 0.4:
        body["stop"] = dice.sample([" the", "e", "is", ".", "42"], dice.choice([1, 3]))
    if dice.random() < 0.3:
        body["logit_bias"] = {str(dice.randrange(20, 400)): dice.choice([-100, 2.5]) for _ in range(3)}
    if path == "/v1/chat/completions":
        said = " ".join(dice.choices(WORDS, k=dice.choice([3, 12, 200])))
        body["messages"] = [{"role": "user", "content": f"{number}: {said}"}]
        body |= {"logprobs": True, "top_logprobs": dice.choice([0, 5])} if dice.random() < 0.5 else {}
    else:
        body["prompt"] = [20 + number] + [dice.randrange(20, 400) for _ in range(dice.choice([1, 7, 64, 300, 700]))]
        body |= {"n_probs" if path == "/completion" else "logprobs": 3} if dice.random() < 0.5 else {}
    return Asked(path, body)


def compared_answer(asked: Asked, body: bytes, *, stream: bool) -> dict[str, Any]:
    """All that an answer says, put together from its pieces if it came as a stream, but for what was reused."""
    if not stream:
        return _flattened([json.loads(body)])
    return _flattened(stream_chunks(body.decode(), done=asked.path.startswith("/v1")))


def broken_off(asked: Asked, body: bytes) -> str | None:
    """The message of the error that a stream ended with, if it did."""
    chunks = stream_chunks(body.decode(), done=asked.path.startswith("/v1"))
    return str(chunks[-1]["error"]["message"]) if "error" in chunks[-1] else None


def _flattened(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for chunk in chunks:
        for choice in chunk.get("choices") or [{}]:
            parts = {**chunk, **choice, **choice.get("message", {}), **choice.get("delta", {})}
            for name in ("choices", "message", "delta", *_PASSING):
                parts.pop(name, None)
            _join(found, parts)
    timings = chunks[-1]["timings"]
    found["prompt_n"] = timings["prompt_n"] + timings["cache_n"]
    found.get("usage", {}).pop("prompt_tokens_details", None)
    return _without_nothing(found)


def _without_nothing(found: dict[str, Any]) -> dict[str, Any]:
    """What is empty may be said or left out."""
    shown = {name: _without_nothing(value) if isinstance(value, dict) else value for name, value in found.items()}
    return {name: value for name, value in shown.items() if value not in (None, "", [], {})}


def _join(found: dict[str, Any], parts: dict[str, Any]) -> None:
    """Texts and lists of the pieces one after the other, everything else as it was said last."""
    for name, value in parts.items():
        before = found.get(name)
        if value is None or value == [] or value == "":
            found.setdefault(name, value)
        elif isinstance(value, dict) and name == "logprobs":
            found[name] = dict(before or {})
            _join(found[name], value)
        elif isinstance(value, list) or (isinstance(value, str) and name in ("content", "reasoning_content", "text")):
            found[name] = value if not before else before + value
        else:
            found[name] = value
