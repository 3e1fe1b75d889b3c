"""What the prompt cache holds at one moment, for whoever asks from another thread."""

from __future__ import annotations

from dataclasses import dataclass

from ninfer.resources.slot_facts import CatalogStatistics, SlotFacts


@dataclass(frozen=True)
class CatalogView:
    """slots: the conversations that are kept. statistics: None without a prompt cache.

    captures_taken, captures_skipped: checkpoints that prefills left, and those for which something was missing, by
    what; endpoints_kept, endpoints_without_room: how requests ended; backfilled: requests that were admitted before an
    earlier one; aborted: admissions that were given up while bytes were moved.
    """

    slots: tuple[SlotFacts, ...] = ()
    statistics: CatalogStatistics | None = None
    captures_taken: int = 0
    captures_skipped: tuple[tuple[str, int], ...] = ()
    endpoints_kept: int = 0
    endpoints_without_room: int = 0
    backfilled: int = 0
    aborted: int = 0
