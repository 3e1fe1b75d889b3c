"""Why something is not in the catalog any more. Every removal has one, and each is counted."""

from __future__ import annotations

import enum


class RemovalReason(enum.StrEnum):
    """CONSUMED and SUPERSEDED lose nothing that is still wanted; the others are evictions or failures."""

    CONSUMED = "consumed"
    """A request went on from it, or from before it."""
    SUPERSEDED = "superseded"
    """A later checkpoint of the same continuation took its place."""
    CATALOG_FULL = "catalog_full"
    """Its cell was needed."""
    SHARED_FULL = "shared_full"
    """Its place among the shared prefixes was needed."""
    PRESSURE = "pressure"
    """A plan gave it up for memory, or what a request left behind needed its room."""
    DISCARDED = "discarded"
    """Its sequence ended and could not be kept."""
    COPY_FAILED = "copy_failed"
    ERASED = "erased"
    """Somebody asked for it."""


# What somebody might have used again.
LOSSES = frozenset(RemovalReason) - {RemovalReason.CONSUMED, RemovalReason.SUPERSEDED}
