"""Which live requests are too late."""

from __future__ import annotations

import math

from ninfer.engine.request import Request


class Deadlines:
    """Holds live requests only, so that a far deadline keeps nothing of a request that has long ended.

    Looking costs one comparison while nobody is late; adding and dropping walk over the few live requests.
    """

    def __init__(self) -> None:
        self._times: dict[Request, float] = {}
        self._next = math.inf

    @property
    def any(self) -> bool:
        return bool(self._times)

    def add(self, request: Request) -> None:
        if request.deadline is not None:
            self._times[request] = request.deadline
            self._next = min(self._next, request.deadline)

    def drop(self, request: Request) -> None:
        """The request has ended."""
        if self._times.pop(request, None) is not None:
            self._next = min(self._times.values(), default=math.inf)

    def late(self, now: float) -> list[Request]:
        """Those whose deadline has come; they stay until they are dropped."""
        if now < self._next:
            return []
        return [request for request, time in self._times.items() if time <= now]
