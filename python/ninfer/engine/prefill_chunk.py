"""How many tokens one prefill unit takes when nobody says: measured at load."""

from __future__ import annotations

import time

import numpy as np

from ninfer import native
from ninfer.engine.capacity import MAX_AUTO_CHUNK, PAGE_TOKENS

# A unit is the shortest time after which a cancellation or another request is seen.
_UNIT_SECONDS = 1.0
_MEASURING_SECONDS = 0.5


def measured_chunk(program: native.Program, max_context: int) -> int:
    """The largest multiple of 64 that prefills within a second here, 64 to 2,048; results never depend on it.

    Doubles a trial unit until measuring has used half a second or the limit is reached; the longest trial decides.
    """
    deadline = time.perf_counter() + _MEASURING_SECONDS
    rows = PAGE_TOKENS
    tokens_per_second = 0.0
    while rows < max_context and rows <= MAX_AUTO_CHUNK // 2:
        seconds = _unit_seconds(program, rows)
        tokens_per_second = rows / seconds
        if time.perf_counter() + 2 * seconds > deadline:
            break
        rows *= 2
    chunk = int(tokens_per_second * _UNIT_SECONDS) // PAGE_TOKENS * PAGE_TOKENS
    return max(PAGE_TOKENS, min(chunk, MAX_AUTO_CHUNK))


def _unit_seconds(program: native.Program, rows: int) -> float:
    sequence = native.must(program.open_sequence(rows + 1))
    try:
        native.must(program.append(sequence, np.zeros(rows + 1, np.int32)))
        start = time.perf_counter()
        native.must(program.prefill(sequence, rows))
        return time.perf_counter() - start
    finally:
        native.must(program.close_sequence(sequence))
