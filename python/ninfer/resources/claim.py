"""What a request holds of the catalog, from before its admission starts until it has finished or is discarded.

Life of a claim:
1. CLAIMED: an edge protects the source's owner; a cell is reserved, the source's own if its owner is taken over;
2. ACTIVE: the admission was adopted; captures join the cell;
3. ENDED: finished, discarded or aborted; edge and reservation are gone.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from ninfer.resources.catalog_entry import CatalogEntry
from ninfer.resources.reuse_key import ReuseKey
from ninfer.resources.source_offer import SourceOffer


class ClaimState(enum.Enum):
    CLAIMED = "claimed"
    ACTIVE = "active"
    ENDED = "ended"


_MOVES = {
    ClaimState.CLAIMED: frozenset({ClaimState.ACTIVE, ClaimState.ENDED}),
    ClaimState.ACTIVE: frozenset({ClaimState.ENDED}),
    ClaimState.ENDED: frozenset[ClaimState](),
}


@dataclass(eq=False)
class Claim:
    """cell: None if the request publishes nothing. deletes: what the start removes of the source's owner, exactly.

    replaces: the owner that goes with the start, for its cell.

    consumed: what the catalog knew of a source that went with the start; it comes back if nothing is computed.
    published: owners of the shared prefixes that the request has made. rewritten_from: where the open turn of its
    prompt will change once it is closed; set by who claims.
    """

    request_id: int
    key: ReuseKey
    offer: SourceOffer | None
    cell: int | None
    deletes: frozenset[int] = frozenset()
    replaces: int | None = None
    state: ClaimState = ClaimState.CLAIMED
    rewritten_from: int | None = field(default=None, init=False)
    consumed: CatalogEntry | None = field(default=None, init=False)
    published: frozenset[int] = field(default=frozenset(), init=False)

    @property
    def takes_owner(self) -> bool:
        return self.offer is not None and self.offer.takes_owner

    @property
    def extends(self) -> frozenset[int]:
        """Owners of the shared prefixes with which its prompt begins."""
        return frozenset() if self.offer is None else self.offer.extends

    @property
    def source(self) -> int | None:
        return None if self.offer is None else self.offer.checkpoint

    @property
    def source_goes(self) -> bool:
        return self.source in self.deletes

    @property
    def cell_number(self) -> int:
        assert self.cell is not None, self
        return self.cell

    def move_to(self, state: ClaimState) -> None:
        assert state in _MOVES[self.state], (self.request_id, self.state, state)
        self.state = state
