"""Puts a step loop together for a loaded model."""

from __future__ import annotations

from collections.abc import Callable

from ninfer import native
from ninfer.config.engine_options import EngineOptions
from ninfer.engine.copies import Copies, CopyBudget
from ninfer.engine.intake import Intake
from ninfer.engine.loaded_model import LoadedModel
from ninfer.engine.loop_parts import LoopParts
from ninfer.engine.publisher import Publisher
from ninfer.engine.scheduler import Scheduler
from ninfer.engine.step_loop import StepLoop
from ninfer.resources.context_cache_options import ContextCacheOptions
from ninfer.resources.removal_reason import RemovalReason
from ninfer.resources.resource_manager import ResourceManager


def context_cache_options(options: EngineOptions) -> ContextCacheOptions:
    """What of the engine's options the catalog reads."""
    return ContextCacheOptions(
        enabled=options.context_cache,
        max_private_continuations=options.max_private_continuations,
        max_shared_prefixes=options.max_shared_prefixes,
        max_long_anchors_per_continuation=options.max_long_anchors_per_continuation,
        auto_long_anchors=options.auto_long_anchors,
        auto_prefix_grid=options.auto_prefix_grid,
        endpoint_anchors=options.endpoint_anchors,
    )


def make_parts(
    model: LoadedModel, intake: Intake, publisher: Publisher, clock: Callable[[], float], budget: CopyBudget
) -> LoopParts:
    """With a catalog, unless the options want no prompt cache."""
    options = context_cache_options(model.options)
    statistics = model.program.statistics()
    manager = None
    if options.enabled:
        manager = ResourceManager(options, model.program, has_state=statistics.state_image_bytes > 0)

    def lost(checkpoints: list[int]) -> None:
        if manager is not None:
            manager.note_removed(checkpoints, RemovalReason.COPY_FAILED)

    return LoopParts(
        program=model.program,
        scheduler=Scheduler(model.capacity.max_concurrency, model.prefill_chunk),
        intake=intake,
        publisher=publisher,
        clock=clock,
        copies=Copies(model.program, budget, lost),
        manager=manager,
        statistics=statistics,
    )


def make_loop(model: LoadedModel, parts: LoopParts, planning: native.PlanningSession | None = None) -> StepLoop:
    """planning: for tests whose program stands for another one."""
    if parts.manager is None:
        planning = None
    elif planning is None:
        planning = native.PlanningSession(model.program)
    return StepLoop(parts, planning)
