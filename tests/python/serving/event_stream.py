"""Reads server-sent events as strictly as the strictest client."""

from __future__ import annotations

import json
from typing import Any


def stream_chunks(text: str, *, done: bool = True) -> list[dict[str, Any]]:
    """The JSON of every event; the stream must end with [DONE] if `done`."""
    events = []
    for block in text.removesuffix("\n\n").split("\n\n"):
        lines = [line for line in block.split("\n") if not line.startswith(":")]
        assert len(lines) == 1 and lines[0].startswith("data: "), f"not one event: {block!r}"
        events.append(lines[0].removeprefix("data: "))
    if done:
        assert events.pop() == "[DONE]"
    return [json.loads(event) for event in events]
