"""What the parts of the step loop share. Only the worker thread touches any of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ninfer import native
from ninfer.engine.copies import Copies
from ninfer.engine.deadlines import Deadlines
from ninfer.engine.intake import Intake
from ninfer.engine.publisher import Publisher
from ninfer.engine.scheduler import Scheduler
from ninfer.resources.resource_manager import ResourceManager


@dataclass(eq=False)
class LoopParts:
    """manager: the catalog; None without a prompt cache. statistics: the program's, after the last transition."""

    program: native.Program
    scheduler: Scheduler
    intake: Intake
    publisher: Publisher
    clock: Callable[[], float]
    copies: Copies
    manager: ResourceManager | None
    statistics: native.ProgramStatistics
    deadlines: Deadlines = field(default_factory=Deadlines)

    @property
    def catalog(self) -> ResourceManager:
        """For whoever holds a claim: there is a catalog then."""
        assert self.manager is not None, "a claim without a catalog"
        return self.manager

    def transition_ended(self) -> None:
        """Sequences, owners or places have changed."""
        self.statistics = self.program.statistics()
