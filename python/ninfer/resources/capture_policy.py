"""At which frontiers a prefill stops to keep a checkpoint. Pure."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol

from ninfer.resources.checkpoint_kind import CheckpointKind
from ninfer.resources.context_cache_options import ContextCacheOptions


def assert_never_built() -> NoReturn:
    raise RuntimeError("this part of the catalog is an interface so far")


class MessageStart(Protocol):
    @property
    def frontier(self) -> int: ...
    @property
    def message(self) -> int: ...


class Boundaries(Protocol):
    """frontend.PromptBoundaries, as far as the policy reads it."""

    @property
    def messages(self) -> Sequence[MessageStart]: ...
    @property
    def tools_end(self) -> int | None: ...
    @property
    def leading_end(self) -> int | None: ...
    @property
    def turn_closure(self) -> int | None: ...
    @property
    def response_replay(self) -> int | None: ...
    @property
    def markers(self) -> Sequence[int]: ...
    @property
    def raw(self) -> bool: ...


class Evidence(enum.StrEnum):
    """Why a shared prefix may be created (C7)."""

    EXPLICIT_BOUNDARY = "explicit_boundary"
    REQUESTED_AUTOMATIC = "requested_automatic"
    DEFAULT_AUTOMATIC = "default_automatic"
    ENGINE_STRUCTURAL = "engine_structural"
    ENGINE_OBSERVED = "engine_observed"

    @property
    def is_declared(self) -> bool:
        return self in (Evidence.EXPLICIT_BOUNDARY, Evidence.REQUESTED_AUTOMATIC)


@dataclass(frozen=True)
class CaptureCandidate:
    """own: joins the request's continuation; else it gets a shared owner, and evidence says why."""

    frontier: int
    kind: CheckpointKind
    own: bool
    evidence: Evidence | None = None


@dataclass(frozen=True)
class CaptureFacts:
    """Frontiers of a prompt that have a shared entry already, and those that two independent domains proposed."""

    already_shared: frozenset[int] = frozenset()
    repeated: frozenset[int] = frozenset()


@dataclass(frozen=True)
class CaptureSituation:
    """base: where the prefill begins. surviving: frontiers of the continuation's checkpoints that remain."""

    prompt_tokens: int
    base: int
    surviving: frozenset[int] = frozenset()
    publishes: bool = True


def capture_candidates(
    boundaries: Boundaries, situation: CaptureSituation, facts: CaptureFacts, options: ContextCacheOptions
) -> tuple[CaptureCandidate, ...]:
    """Ascending, above the base and at most prompt_tokens - 1; at one frontier the shared one comes first."""
    assert_never_built()
