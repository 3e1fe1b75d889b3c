"""How a protocol writes one answer. The order of events is the engine's, the words are the protocol's."""

from __future__ import annotations

from typing import Any, Protocol

from ninfer.engine.events import Finished, PrefillProgress, TokenEvent

Chunk = dict[str, Any]


class AnswerWriter(Protocol):
    """One per request: `opening`, then `progress`, then `token`, then `finished`.

    Each returns what a stream sends for it, perhaps nothing. `whole` is the answer of a request that does not stream,
    after `finished`. done: what a stream sends at its very end.
    """

    done: bytes

    def opening(self) -> list[Chunk]: ...

    def progress(self, event: PrefillProgress) -> list[Chunk]: ...

    def token(self, event: TokenEvent) -> list[Chunk]: ...

    def finished(self, event: Finished) -> list[Chunk]: ...

    def whole(self) -> Chunk: ...
