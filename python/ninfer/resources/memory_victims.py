"""Who gives way where memory has no room for what a request leaves behind. Nobody that a request starts from."""

from __future__ import annotations

from ninfer.resources.catalog import Catalog
from ninfer.resources.claim import Claim
from ninfer.resources.private_catalog import CellState
from ninfer.resources.retention import RetentionClass
from ninfer.resources.shared_catalog import SharedPrefix


def memory_victims(catalog: Catalog, claim: Claim) -> list[int]:
    """Owners in the order in which they go: Disposable, shared prefixes without credit, RecentPrivate, shared ones with
    credit, LiveSession (a credit counts as one use, a class as 1, 4 or 16: E3); of each the least recently used first.
    At the very last the shared prefixes that the claim's own request lies behind: its end serves whoever asks again,
    but no other conversation.
    """
    private, own = _idle_private(catalog), claim.extends | claim.published
    foreign = shared_victims(catalog, claim)
    shared = [prefix.owner for prefix in _idle_shared(catalog)]
    return [
        *private[RetentionClass.DISPOSABLE],
        *foreign,
        *private[RetentionClass.RECENT_PRIVATE],
        *(owner for owner in shared if owner not in foreign and owner not in own),
        *private[RetentionClass.LIVE_SESSION],
        *(owner for owner in shared if owner in own),
    ]


def cheap_victims(catalog: Catalog, claim: Claim) -> list[int]:
    """The first of them: what is worth less than the own anchors of the request."""
    return [*_idle_private(catalog)[RetentionClass.DISPOSABLE], *shared_victims(catalog, claim)]


def shared_victims(catalog: Catalog, claim: Claim) -> list[int]:
    """Owners of the shared prefixes that may go for this request, the least recently used first (C8)."""
    own = claim.extends | claim.published
    idle = _idle_shared(catalog)
    return [one.owner for one in idle if one.owner not in own and not one.has_credit(catalog.admissions)]


def _idle_private(catalog: Catalog) -> dict[RetentionClass, list[int]]:
    readers = catalog.edges.counts()
    idle = [cell for cell in catalog.cells if cell.state is CellState.IDLE and cell.owner not in readers]
    idle.sort(key=lambda cell: cell.used_at)
    return {kind: [cell.owner for cell in idle if cell.retention is kind] for kind in RetentionClass}


def _idle_shared(catalog: Catalog) -> list[SharedPrefix]:
    """A declared one whose credit is over goes like any other; or declared ones could end the sharing for good."""
    readers = catalog.edges.counts()
    idle = [one for one in catalog.shared if one.owner not in readers]
    return sorted(idle, key=lambda prefix: (prefix.used_at, prefix.published_at))
