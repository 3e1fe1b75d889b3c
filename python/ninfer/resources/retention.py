"""How much a private continuation is worth keeping (D-20)."""

from __future__ import annotations

import enum


class RetentionClass(enum.IntEnum):
    """In the order in which they are given up."""

    DISPOSABLE = 0
    RECENT_PRIVATE = 1
    LIVE_SESSION = 2
