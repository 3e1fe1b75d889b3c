"""Why a prompt was not reused further."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class ReuseReason(enum.StrEnum):
    """What each means is said in docs/design/context_catalog.md."""

    NO_MATCH = "no_match"
    EVICTED = "evicted"
    NO_CHECKPOINT = "no_checkpoint"
    REWRITTEN_HISTORY = "rewritten_history"
    SALT = "salt"
    DISABLED = "disabled"
    PRESSURE_REFUSED = "pressure_refused"


@dataclass(frozen=True)
class Divergence:
    """token: the first that differs. message: in which it stands; None for raw prompts."""

    token: int
    message: int | None


@dataclass(frozen=True)
class Shortfall:
    """shared_tokens: the longest prefix that something kept shares, if longer than what was reused."""

    shared_tokens: int | None = None
    divergence: Divergence | None = None
    reason: ReuseReason | None = None
