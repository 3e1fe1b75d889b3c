"""Sees the logits of every row that a served engine samples, without the engine knowing."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer import native

Chain = list[bytes]


@dataclass
class Compared:
    """What became of the sequences of one prompt that were compared. whole: all of the logits alone; parts: fewer."""

    whole: int = 0
    parts: int = 0
    rows: int = 0


@dataclass
class LogitsWitness:
    """In place of the program of a LoadedModel: passes everything on, and keeps a digest of the full f32 logits of
    every sampled row, by sequence.

    While `alone` is being filled (`learning`), a closed sequence's digests are what its prompt computes alone. Later
    every closed sequence, finished or broken off, must have a beginning of them; what differs is listed in `wrong`.
    A prompt stands for one request: requests with the same prompt must have the same parameters.
    """

    program: native.Program
    learning: bool = True
    alone: dict[bytes, Chain] = field(default_factory=dict)
    compared: dict[bytes, Compared] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._open: dict[int, tuple[bytes, Chain]] = {}
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.program, name)

    def append(self, sequence: int, tokens: NDArray[np.int32]) -> Any:
        self._open[sequence] = (prompt_key(tokens), [])
        return self.program.append(sequence, tokens)

    def finish_prefill(self, sequence: int, sampler: native.Sampler) -> Any:
        return self._witnessed([sequence], self.program.finish_prefill(sequence, sampler))

    def decode(self, rows: list[tuple[int, native.Sampler]]) -> Any:
        return self._witnessed([sequence for sequence, _ in rows], self.program.decode(rows))

    def close_sequence(self, sequence: int) -> Any:
        key, chain = self._open.pop(sequence)
        with self._lock:
            self._compare(key, chain)
        return self.program.close_sequence(sequence)

    def _witnessed(self, sequences: list[int], batch: Any) -> Any:
        for row, sequence in enumerate(sequences):
            logits = np.asarray(self.program.last_logits(row), np.float32)
            self._open[sequence][1].append(hashlib.blake2b(logits, digest_size=16).digest())
        return batch

    def _compare(self, key: bytes, chain: Chain) -> None:
        if self.learning:
            self.alone[key] = chain
            return
        alone = self.alone.get(key)
        if alone is None or chain != alone[: len(chain)]:
            same = next((i for i, pair in enumerate(zip(chain, alone or [], strict=False)) if pair[0] != pair[1]), -1)
            self.wrong.append(f"prompt {key.hex()}: {len(chain)} rows, equal before row {same}")
            return
        found = self.compared.setdefault(key, Compared())
        found.rows += len(chain)
        if len(chain) == len(alone):
            found.whole += 1
        else:
            found.parts += 1


def prompt_key(tokens: NDArray[np.int32] | list[int]) -> bytes:
    return hashlib.blake2b(np.asarray(tokens, np.int32), digest_size=8).digest()
