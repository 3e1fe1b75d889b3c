"""What loading a model yields."""

from __future__ import annotations

from dataclasses import dataclass

from ninfer import native
from ninfer.config.engine_options import EngineOptions
from ninfer.economics.machine_cost import MachineCost
from ninfer.engine.capacity import Capacity
from ninfer.engine.model_frontend import ModelFrontend
from ninfer.weights.model_files import ModelFiles


@dataclass(frozen=True)
class LoadedModel:
    """What loading yields; an engine only adds requests to it. prefill_chunk: most tokens of one prefill unit.
    cost: what copying and computing take, as far as it was measured."""

    files: ModelFiles
    options: EngineOptions
    capacity: Capacity
    frontend: ModelFrontend
    program: native.Program
    prefill_chunk: int
    cost: MachineCost
