"""What a request holds of the catalog, from before its admission starts until it has finished or is discarded.

Life of a claim:
1. CLAIMED: an edge protects the source's owner; a cell is reserved, the source's own if its owner is taken over;
2. ACTIVE: the admission was adopted; captures join the cell;
3. ENDED: finished, discarded or aborted; edges and reservation are gone.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from ninfer.resources.reuse_key import ReuseKey
from ninfer.resources.source_offer import SourceOffer


class ClaimState(enum.Enum):
    CLAIMED = "claimed"
    ACTIVE = "active"
    ENDED = "ended"


@dataclass(eq=False)
class Claim:
    """cell: None if the request publishes nothing. deletes: what the start removes of the source's owner, exactly."""

    request_id: int
    key: ReuseKey
    offer: SourceOffer | None
    cell: int | None
    deletes: frozenset[int] = frozenset()
    state: ClaimState = field(default=ClaimState.CLAIMED)
    base: int = 0
    """Tokens with which the sequence began."""
