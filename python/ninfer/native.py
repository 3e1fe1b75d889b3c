"""The one door to the native core: everything else imports these names from here."""

from __future__ import annotations

from typing import TypeVar

from ninfer._core import (
    LlamaConfig,
    MappedFile,
    MatrixTarget,
    ModelSource,
    PendingBatch,
    Program,
    ProgramOptions,
    ProgramStatistics,
    Qwen35Config,
    Refusal,
    SampledToken,
    Sampler,
    StateProbe,
    WeightLoader,
    llama_model,
    qwen35_model,
    supported_cpu_isas,
)

__all__ = [
    "LlamaConfig",
    "MappedFile",
    "MatrixTarget",
    "ModelSource",
    "PendingBatch",
    "Program",
    "ProgramOptions",
    "ProgramStatistics",
    "Qwen35Config",
    "Refusal",
    "SampledToken",
    "Sampler",
    "StateProbe",
    "WeightLoader",
    "llama_model",
    "must",
    "qwen35_model",
    "supported_cpu_isas",
]

T = TypeVar("T")


def must(result: T | Refusal) -> T:
    """The value of a call whose refusal would be a bug of the caller."""
    assert not isinstance(result, Refusal), str(result)
    return result
