"""What a request did not have to compute, from where, and why not more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ninfer import native
from ninfer.resources.checkpoint_kind import CheckpointKind
from ninfer.resources.reuse_report import ReuseReason, Shortfall

ReuseSource = Literal["root", "device", "host", "mixed"]


@dataclass(frozen=True, slots=True)
class ReuseReport:
    """source: where the bytes of the checkpoint lay; root: there was none. path: its kind. frontier: tokens that were
    reused. shortfall: what is kept and begins like more of the prompt, if anything, and why it did not serve."""

    source: ReuseSource = "root"
    path: CheckpointKind | None = None
    frontier: int = 0
    shortfall: Shortfall = field(default_factory=Shortfall)


NO_CACHE = ReuseReport(shortfall=Shortfall(reason=ReuseReason.DISABLED))


def source_of(checkpoint: native.CheckpointSummary) -> ReuseSource:
    """Before anything of it is moved."""
    if checkpoint.device_ready:
        return "device"
    if checkpoint.pages_on_device == 0 and not checkpoint.image_on_device:
        return "host"
    return "mixed"
