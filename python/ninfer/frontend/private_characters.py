"""Characters without a meaning, for marking places in text that others process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

_FIRST, _LAST = 0xF0000, 0xFFFFD  # the private-use plane; no normaliser, filter or white-space rule touches it


def unused_characters(texts: str, count: int) -> list[str]:
    """`count` private-use characters that stand nowhere in `texts`, neither plain nor as a JSON escape."""
    found = list(islice((chr(code) for code in range(_FIRST, _LAST + 1) if _unused(chr(code), texts)), count))
    assert len(found) == count, (len(found), count)
    return found


def json_escape(character: str) -> str:
    """How an ASCII-only JSON writer spells the character."""
    return json.dumps(character)[1:-1]


def strings_of(value: Any) -> Iterator[str]:
    """Every string in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from strings_of(key)
            yield from strings_of(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings_of(item)


def _unused(character: str, texts: str) -> bool:
    return character not in texts and json_escape(character) not in texts
