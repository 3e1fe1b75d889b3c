"""The tables of facts that a search reads: which columns, in which order. Whoever brings the session brings these."""

from __future__ import annotations

AXES = ("device_pages", "image_slots_checkpoint", "host_blocks")
"""What giving up inactive owners can bring back."""
STATUSES = ("ready", "needs_transfer", "temporarily_blocked", "permanently_infeasible")
KINDS = ("drop_host_pages", "drop_host_image", "pages_to_host", "image_to_host", "shorten", "delete", "evict")


def _places(*names: str) -> dict[str, int]:
    return {name: place for place, name in enumerate(names)}


_COPIES = tuple(
    f"{name}_{what}" for name in ("to_host", "to_device", "within_device") for what in ("operations", "bytes")
)
ASSESSMENT = _places(
    "status",
    *(f"residual_{axis}" for axis in AXES),
    *_COPIES,
    "reused_tokens",
    "computed_tokens",
    "checkpoints_removed",
    "owners_evicted",
)
RECOVERY = _places("target", "checkpoint", "owner", "base", "frontier", "base_frontier", *_COPIES[2:])
DEGRADATION = _places(
    "kind", "owner", "checkpoint", "device_pages", "frontier", *(f"relief_{axis}" for axis in AXES), "copied_bytes"
)

FEASIBLE = (STATUSES.index("ready"), STATUSES.index("needs_transfer"))
RESIDUAL = [ASSESSMENT[f"residual_{axis}"] for axis in AXES]
RELIEF = [DEGRADATION[f"relief_{axis}"] for axis in AXES]
