"""Which prefixes the last requests could have made, and for whom: a prefix that two independent ones name is shared."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ninfer.resources.catalog_entry import Digest

WINDOW = 32

Domain = tuple[str, ...]
"""The session's name, or something that no other request has. No prompt and no text is kept."""
PrefixKey = tuple[int, Digest]
"""Frontier and digest."""


class DemandWindow:
    """The last 32 requests that became active."""

    def __init__(self) -> None:
        self._demands: deque[tuple[Domain, frozenset[PrefixKey]]] = deque(maxlen=WINDOW)

    def record(self, domain: Domain, keys: Iterable[PrefixKey]) -> None:
        self._demands.append((domain, frozenset(keys)))

    def keys(self) -> list[frozenset[PrefixKey]]:
        """Of each request, the oldest first."""
        return [keys for _, keys in self._demands]

    def named_by_others(self, domain: Domain | None, keys: Iterable[PrefixKey]) -> frozenset[PrefixKey]:
        """Those of the keys that another domain has named as well. None: a domain that nobody has."""
        named: set[PrefixKey] = set()
        for other, theirs in self._demands:
            if other != domain:
                named |= theirs
        return frozenset(named.intersection(keys))
