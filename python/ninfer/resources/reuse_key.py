"""Under which name a request may read and be kept."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReuseKey:
    """salt: in the prompt's identity, so nothing crosses it. session: a lookup key and a binding, never a proof.

    reads and publishes are both False for a request that leaves nothing behind (Disabled).
    """

    salt: str = ""
    session: str | None = None
    reads: bool = True
    publishes: bool = True
