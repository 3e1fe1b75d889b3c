"""How far two long texts agree, without looking at their characters one by one."""

from __future__ import annotations

_BLOCK = 1 << 16


def common_length(text: str, other: str) -> int:
    """How many characters two texts begin with in common."""
    start = 0
    while start < len(text) and text[start : start + _BLOCK] == other[start : start + _BLOCK]:
        start += _BLOCK
    low, high = 0, _BLOCK
    while low < high:
        middle = (low + high + 1) // 2
        if text[start : start + middle] == other[start : start + middle]:
            low = middle
        else:
            high = middle - 1
    return min(start + low, len(text), len(other))
