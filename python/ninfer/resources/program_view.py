"""What the catalog asks of the program and of a prepared prompt. The native ones satisfy these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ninfer.native import CheckpointSummary, OwnerSummary, ProgramStatistics, Refusal


class PromptIdentity(Protocol):
    """A prepared prompt, as far as the catalog reads it."""

    @property
    def size(self) -> int: ...
    @property
    def salt(self) -> str: ...
    def digests(self, frontiers: NDArray[np.int64]) -> NDArray[np.uint64]:
        """uint64 [k, 2] for frontiers 0 to size."""

    def matches(self, frontiers: NDArray[np.int64], digests: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """bool [k]; False beyond the prompt."""


class ProgramView(Protocol):
    """The questions; releasing and deleting is the engine's."""

    def owner(self, owner: int, /) -> OwnerSummary | Refusal: ...
    def checkpoint(self, checkpoint: int, /) -> CheckpointSummary | Refusal: ...
    def checkpoint_digests(self, checkpoint: int, frontiers: NDArray[np.int64], /) -> NDArray[np.uint64] | Refusal: ...
    def verify(self, prompt: PromptIdentity, checkpoints: Sequence[int], /) -> Sequence[int] | Refusal:
        """How many tokens of the prompt each checkpoint begins with."""

    def statistics(self) -> ProgramStatistics: ...
