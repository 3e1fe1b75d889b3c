"""Which owners living requests protect. Every count of readers is made from these edges; nobody keeps another one."""

from __future__ import annotations

from collections import Counter


class OwnerEdges:
    """At most one edge per request: to the owner of the source from which it starts.

    Edges do not care about residency: an owner that moves between the tiers keeps them.
    """

    def __init__(self) -> None:
        self._owner_of: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._owner_of)

    def add(self, request_id: int, owner: int) -> None:
        assert request_id not in self._owner_of, request_id
        self._owner_of[request_id] = owner

    def end(self, request_id: int) -> None:
        """Nothing if the request has none."""
        self._owner_of.pop(request_id, None)

    def counts(self) -> Counter[int]:
        return Counter(self._owner_of.values())

    def counts_without(self, request_id: int) -> Counter[int]:
        """Those of all others."""
        return Counter(owner for reader, owner in self._owner_of.items() if reader != request_id)

    def protects(self, owner: int) -> bool:
        return owner in self._owner_of.values()
