"""How much memory the bodies of all requests may take together."""

from __future__ import annotations

from types import TracebackType

from ninfer.serving.http_errors import ApiError

# Small bodies are always taken: their number is bounded by that of connections, and nobody who sends large ones may
# keep them out.
FREE_BYTES = 64 << 10
_RETRY_SECONDS = 5


class BodyBudget:
    """`limit_bytes` for what bodies hold above FREE_BYTES each, from their first byte until they have been taken apart.

    Lives on the event loop. kind: what the bodies are called where there is no room.
    """

    def __init__(self, limit_bytes: int, kind: str = "bodies") -> None:
        self._limit_bytes = limit_bytes
        self.kind = kind
        self.taken_bytes = 0

    def share(self) -> BodyShare:
        """One body's part of it."""
        return BodyShare(self)

    def take(self, count: int) -> bool:
        """Whether there is room for `count` bytes more; they are taken then."""
        if self.taken_bytes + count > self._limit_bytes:
            return False
        self.taken_bytes += count
        return True


class BodyShare:
    """Grows with its body; gives everything back once nobody holds it any more. A `with` block holds it."""

    def __init__(self, budget: BodyBudget) -> None:
        self._budget = budget
        self._taken_bytes = 0
        self._holders = 0

    def grow_to(self, body_bytes: int) -> None:
        """503 if all bodies together would be too large; a later try may succeed."""
        assert self._holders > 0, "a share that nobody holds would never come back"
        more = max(body_bytes - FREE_BYTES, 0) - self._taken_bytes
        if more <= 0:
            return
        if not self._budget.take(more):
            kind = self._budget.kind
            headers = {"Connection": "close", "Retry-After": str(_RETRY_SECONDS)}
            raise ApiError(503, f"too many large {kind} at once", code=f"too_many_{kind}", headers=headers)
        self._taken_bytes += more

    def hold(self) -> None:
        self._holders += 1

    def let_go(self) -> None:
        assert self._holders > 0, "let go more often than held"
        self._holders -= 1
        if self._holders == 0:
            self._budget.taken_bytes -= self._taken_bytes
            self._taken_bytes = 0

    def __enter__(self) -> BodyShare:
        self.hold()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.let_go()
