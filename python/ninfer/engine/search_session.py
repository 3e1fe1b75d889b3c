"""The native planning session with its facts in the planner's tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ninfer import native
from ninfer.economics.machine_cost import Rows
from ninfer.planner.session_columns import ASSESSMENT, DEGRADATION, KINDS, RECOVERY, STATUSES

T = TypeVar("T")

_NAME = [DEGRADATION[name] for name in ("kind", "owner", "checkpoint", "device_pages", "frontier")]


class NativeSearchSession:
    """The same problem that the native session has opened."""

    def __init__(self, planning: native.PlanningSession) -> None:
        kinds, statuses = tuple(native.Degradation.kinds()), tuple(native.TargetAssessment.statuses())
        assert (kinds, statuses) == (KINDS, STATUSES), (kinds, statuses)
        self._planning = planning
        self._assessment = _taken(native.TargetAssessment.columns(), ASSESSMENT)
        self._recovery = _taken(planning.recovery_columns(), RECOVERY)
        self._degradation = _taken(planning.degradation_columns(), DEGRADATION)

    def open(self, options: Sequence[native.Publication], protected_owners: Sequence[int]) -> str | None:
        """Why none of them can be made now, if so."""
        refused = self._planning.open(options, protected_owners)
        return None if refused is None else refused.kind

    def identity(self, option: int) -> int | None:
        """None: the option cannot be made now."""
        return None if self._planning.why_left_out(option) is not None else _answered(self._planning.identity(option))

    def degradations(self, target: int) -> Rows:
        return _answered(self._planning.degradations(target))[:, self._degradation]

    def degrade(self, target: int, steps: Rows) -> int | None:
        """None: steps that mean nothing together, or no place for more targets."""
        found = self._planning.degrade(target, [_degradation(step) for step in steps])
        return None if isinstance(found, native.Refusal) else found

    def assess_many(self, targets: Sequence[int]) -> tuple[Rows, Rows]:
        facts, recoveries = _answered(self._planning.assess_many(targets))
        return facts[:, self._assessment], recoveries[:, self._recovery]

    def baseline(self, option: int) -> Rows:
        return _answered(self._planning.baseline(option))[:, self._recovery]


def _taken(names: Sequence[str], wanted: dict[str, int]) -> list[int]:
    return [names.index(name) for name in wanted]


def _degradation(step: Rows) -> native.Degradation:
    kind, owner, checkpoint, device_pages, frontier = step[_NAME].tolist()
    return native.Degradation(KINDS[kind], owner, checkpoint, device_pages, frontier)


def _answered(result: T | native.Refusal) -> T:
    """Of the session's own targets at its own revision: a refusal here would be a bug."""
    assert not isinstance(result, native.Refusal), str(result)
    return result
