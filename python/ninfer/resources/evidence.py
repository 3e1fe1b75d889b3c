"""Why a shared prefix may be created (C7)."""

from __future__ import annotations

import enum


class Evidence(enum.StrEnum):
    EXPLICIT_BOUNDARY = "explicit_boundary"
    """The client set a marker."""
    REQUESTED_AUTOMATIC = "requested_automatic"
    """The client asked the protocol to choose."""
    DEFAULT_AUTOMATIC = "default_automatic"
    """The protocol chose by itself."""
    ENGINE_STRUCTURAL = "engine_structural"
    """The prompt's own structure: after the tools, after the leading instructions."""
    ENGINE_OBSERVED = "engine_observed"
    """A point that two independent requests have named."""

    @property
    def is_declared(self) -> bool:
        """Whether the client wants it kept."""
        return self in (Evidence.EXPLICIT_BOUNDARY, Evidence.REQUESTED_AUTOMATIC)

    @property
    def needs_repetition(self) -> bool:
        """Whether one request alone is not reason enough."""
        return self in (Evidence.DEFAULT_AUTOMATIC, Evidence.ENGINE_OBSERVED)
