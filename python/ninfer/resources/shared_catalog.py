"""Shared prefixes: immutable, each in an owner of its own, a fixed number of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ninfer.resources.catalog_entry import CatalogEntry, Digest
from ninfer.resources.evidence import Evidence


@dataclass(slots=True)
class SharedPrefix:
    """published_at, used_at: epochs. credit_until: the count of admissions up to which it is not recycled; 0 for none.

    A declared prefix has credit for 32 admissions, or until its first use.
    """

    number: int
    owner: int
    entry: CatalogEntry
    evidence: Evidence
    salt: str
    published_at: int
    used_at: int
    credit_until: int = 0

    def has_credit(self, admissions: int) -> bool:
        return admissions < self.credit_until


class SharedCatalog:
    """All shared prefixes by number, by owner and by what identifies them."""

    def __init__(self, capacity: int, first_row: int) -> None:
        self.capacity = capacity
        self._first_row = first_row
        self._free = list(range(capacity - 1, -1, -1))
        self._prefixes: dict[int, SharedPrefix] = {}
        self._number_of_owner: dict[int, int] = {}
        self._number_of_key: dict[tuple[int, Digest], int] = {}

    def __iter__(self) -> Iterator[SharedPrefix]:
        return iter(self._prefixes.values())

    def __len__(self) -> int:
        return len(self._prefixes)

    def __getitem__(self, number: int) -> SharedPrefix:
        return self._prefixes[number]

    @property
    def has_room(self) -> bool:
        return bool(self._free)

    def next_row(self) -> int:
        return self._first_row + self._free[-1]

    def number_of_row(self, row: int) -> int:
        return row - self._first_row

    def of_owner(self, owner: int) -> SharedPrefix | None:
        number = self._number_of_owner.get(owner)
        return None if number is None else self._prefixes[number]

    def holds(self, frontier: int, digest: Digest) -> bool:
        return (frontier, digest) in self._number_of_key

    def add(self, owner: int, entry: CatalogEntry, evidence: Evidence, salt: str, epoch: int) -> SharedPrefix:
        """The entry's row is next_row()."""
        number = self._free.pop()
        assert entry.row == self._first_row + number, (entry.row, number)
        prefix = SharedPrefix(number, owner, entry, evidence, salt, epoch, epoch)
        self._prefixes[number] = prefix
        self._number_of_owner[owner] = number
        self._number_of_key.setdefault((entry.frontier, entry.digest), number)
        return prefix

    def remove(self, prefix: SharedPrefix) -> None:
        del self._prefixes[prefix.number]
        del self._number_of_owner[prefix.owner]
        key = (prefix.entry.frontier, prefix.entry.digest)
        if self._number_of_key.get(key) == prefix.number:
            del self._number_of_key[key]
        self._free.append(prefix.number)
