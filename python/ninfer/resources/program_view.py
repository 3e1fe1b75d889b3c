"""What the catalog asks of the program and of a prepared prompt. The native ones satisfy these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ninfer.native import Refusal


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


class OwnerFacts(Protocol):
    """native.OwnerSummary. role: 'active', 'private' or 'shared'."""

    @property
    def role(self) -> str: ...
    @property
    def checkpoints(self) -> list[int]: ...


class CheckpointFacts(Protocol):
    """native.CheckpointSummary."""

    @property
    def owner(self) -> int: ...
    @property
    def frontier(self) -> int: ...
    @property
    def pages_on_device(self) -> int: ...
    @property
    def pages_on_host(self) -> int: ...
    @property
    def image_on_device(self) -> bool: ...
    @property
    def image_on_host(self) -> bool: ...


class StoreSizes(Protocol):
    """native.ProgramStatistics."""

    @property
    def page_bytes(self) -> int: ...
    @property
    def state_image_bytes(self) -> int: ...


class TransitionResult(Protocol):
    """native.ResourceResult: how a transition of the program has ended. shortened: before, after, frontier."""

    @property
    def end(self) -> str: ...
    @property
    def removed(self) -> list[int]: ...
    @property
    def shortened(self) -> list[tuple[int, int, int]]: ...


class ProgramView(Protocol):
    """The questions; releasing and deleting is the engine's."""

    def owner(self, owner: int, /) -> OwnerFacts | Refusal: ...
    def checkpoint(self, checkpoint: int, /) -> CheckpointFacts | Refusal: ...
    def checkpoint_digests(self, checkpoint: int, frontiers: NDArray[np.int64], /) -> NDArray[np.uint64] | Refusal: ...
    def verify(self, prompt: Any, checkpoints: Sequence[int], /) -> Sequence[int] | Refusal:
        """How many tokens of the prompt each checkpoint begins with. The prompt is the program's own kind."""

    def statistics(self) -> StoreSizes: ...
