"""What a checkpoint is for. The values are the names that the native core uses."""

from __future__ import annotations

import enum


class CheckpointKind(enum.StrEnum):
    """Where in a conversation a checkpoint stands."""

    SESSION_ENDPOINT = "session_endpoint"
    """The end of a finished request."""
    TURN_CLOSURE = "turn_closure"
    """Before everything of the open turn that a client may rewrite."""
    RESPONSE_REPLAY = "response_replay"
    """Before the opener of the answer, to answer again."""
    LONG_ANCHOR = "long_anchor"
    """An earlier point to which a client may come back."""
    SHARED_STABLE_PREFIX = "shared_stable_prefix"
    """The beginning of many conversations, in an owner of its own."""
