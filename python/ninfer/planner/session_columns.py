"""Places of the facts in rows of the native planning session."""

from __future__ import annotations

from ninfer import native


def _places(names: list[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(names)}


ASSESSMENT = _places(native.TargetAssessment.columns())
RECOVERY = _places(native.PlanningSession.recovery_columns())
DEGRADATION = _places(native.PlanningSession.degradation_columns())
KINDS = native.Degradation.kinds()
STATUSES = native.TargetAssessment.statuses()
FEASIBLE = tuple(STATUSES.index(name) for name in ("ready", "needs_transfer"))

AXES = ("device_pages", "image_slots_checkpoint", "host_blocks")
"""What giving up inactive owners can bring back."""
RESIDUAL = [ASSESSMENT[f"residual_{axis}"] for axis in AXES]
RELIEF = [DEGRADATION[f"relief_{axis}"] for axis in AXES]
