"""The catalog again, as plainly as it can be said: no index, no rows, no states; everything is looked for each time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ninfer.resources.retention import RetentionClass
from ninfer.resources.reuse_key import ReuseKey
from ninfer.resources.source_offer import SourceOffer
from tests.fixtures.fake_contexts import FakeContexts, FakePrompt

CREDIT = 32


@dataclass
class NaiveContinuation:
    retention: RetentionClass = RetentionClass.DISPOSABLE
    session: tuple[str, str] | None = None
    used: int = 0


@dataclass
class NaiveShared:
    maker: int
    published: int
    used: int
    credit_until: int


@dataclass
class NaiveCatalog:
    """continuations: by cell, also of running requests. sources: of running requests that read somebody else's."""

    contexts: FakeContexts
    cells: int
    continuations: dict[int, NaiveContinuation] = field(default_factory=dict)
    owner_of_cell: dict[int, int] = field(default_factory=dict)
    shared: dict[int, NaiveShared] = field(default_factory=dict)
    sources: dict[int, int] = field(default_factory=dict)
    latest: dict[tuple[str, str], int] = field(default_factory=dict)
    doomed: set[int] = field(default_factory=set)
    clock: int = 0
    admissions: int = 0

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def idle_cells(self) -> list[int]:
        owners = self.contexts.owners
        return [cell for cell, owner in self.owner_of_cell.items() if owners[owner].role == "private"]

    def protected(self) -> set[int]:
        return set(self.sources.values())

    def victim(self, offers: Sequence[SourceOffer]) -> int | None:
        free = [cell for cell in self.idle_cells() if self.owner_of_cell[cell] not in self.protected()]
        free.sort(key=lambda cell: (self.continuations[cell].retention, self.continuations[cell].used))
        owners = [self.owner_of_cell[cell] for cell in free]
        offered = {offer.owner for offer in offers}
        first = {offer.owner for offer in offers[:1]}
        others = [owner for owner in owners if owner not in offered]
        return next(iter([*others, *(one for one in owners if one not in first), *owners]), None)

    def recycled(self, extends: Iterable[int], request_id: int) -> int | None:
        """Never what the request began with, or made itself."""
        made = {owner for owner, one in self.shared.items() if one.maker == request_id}
        spared = self.protected() | set(extends) | made
        free = [
            owner for owner, one in self.shared.items() if owner not in spared and self.admissions >= one.credit_until
        ]
        return min(free, key=lambda owner: (self.shared[owner].used, self.shared[owner].published), default=None)

    def matching(self, prompt: FakePrompt) -> dict[int, int]:
        """Per owner, the deepest of its checkpoints from which the prompt may start."""
        deepest: dict[int, int] = {}
        for handle, one in self.contexts.checkpoints.items():
            fits = one.salt == prompt.salt and one.frontier < prompt.size
            if handle not in self.doomed and fits and prompt.tokens[: one.frontier] == one.tokens:
                deepest[one.owner] = max(deepest.get(one.owner, 0), one.frontier)
        return deepest

    def may_be_taken(self, offer: SourceOffer, key: ReuseKey) -> bool:
        if offer.cell is None or not key.publishes or offer.owner in self.protected():
            return False
        session = self.continuations[offer.cell].session
        name = None if key.session is None else (key.salt, key.session)
        return self.contexts.owners[offer.owner].role == "private" and session in (None, name)

    def started(self, request_id: int, cell: int | None, offer: SourceOffer | None) -> None:
        self.admissions += 1
        now = self.tick()
        if offer is not None:
            if offer.cell is not None:
                self.continuations[offer.cell].used = now
            for owner in offer.extends & self.shared.keys():
                self.shared[owner].used, self.shared[owner].credit_until = now, 0
            if not offer.takes_owner:
                self.sources[request_id] = offer.owner
        if cell is not None:
            self.continuations.setdefault(cell, NaiveContinuation())

    def published(self, owner: int, maker: int, *, declared: bool) -> None:
        now = self.tick()
        self.shared[owner] = NaiveShared(maker, now, now, self.admissions + CREDIT if declared else 0)

    def finished(self, request_id: int, cell: int, key: ReuseKey, offer: SourceOffer | None) -> None:
        """With an endpoint (D-20, C3)."""
        self.sources.pop(request_id, None)
        one = self.continuations[cell]
        one.used = self.tick()
        if key.session is None:
            extended = offer is not None and offer.cell is not None
            one.retention = RetentionClass.RECENT_PRIVATE if extended else RetentionClass.DISPOSABLE
            return
        name = (key.salt, key.session)
        holders = [other for other, found in self.continuations.items() if found.session == name]
        if not holders or request_id > self.latest[name]:
            for other in holders:
                self.continuations[other].session = None
                self.continuations[other].retention = RetentionClass.DISPOSABLE
            one.session, self.latest[name] = name, request_id
        one.retention = RetentionClass.LIVE_SESSION if one.session == name else RetentionClass.DISPOSABLE

    def broken_off(self, request_id: int, cell: int) -> None:
        self.sources.pop(request_id, None)
        self.continuations[cell].used = self.tick()

    def forget_owner(self, owner: int) -> None:
        self.shared.pop(owner, None)
        for cell in [cell for cell, one in self.owner_of_cell.items() if one == owner]:
            del self.owner_of_cell[cell], self.continuations[cell]
