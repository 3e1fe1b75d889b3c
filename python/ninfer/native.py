"""The one door to the native core: everything else imports these names from here."""

from __future__ import annotations

from typing import TypeVar

from ninfer._core import (
    AdmissionCandidate,
    BackfillProof,
    CapacityVector,
    CaptureShape,
    CheckpointProbe,
    CheckpointSummary,
    ContextPlan,
    CopyProgress,
    Degradation,
    LlamaConfig,
    MappedFile,
    MatrixTarget,
    ModelSource,
    OwnerSummary,
    PendingBatch,
    PlanningSession,
    PreparedPrompt,
    Program,
    ProgramOptions,
    ProgramStatistics,
    Publication,
    Qwen35Config,
    Refusal,
    ResourceAxes,
    ResourceResult,
    SampledToken,
    Sampler,
    SequenceSummary,
    StateProbe,
    TargetAssessment,
    UsedVector,
    WakeUp,
    WeightLoader,
    llama_model,
    prefix_digests,
    qwen35_model,
    supported_cpu_isas,
    xxh3_128,
)

__all__ = [
    "AdmissionCandidate",
    "BackfillProof",
    "CapacityVector",
    "CaptureShape",
    "CheckpointProbe",
    "CheckpointSummary",
    "ContextPlan",
    "CopyProgress",
    "Degradation",
    "LlamaConfig",
    "MappedFile",
    "MatrixTarget",
    "ModelSource",
    "OwnerSummary",
    "PendingBatch",
    "PlanningSession",
    "PreparedPrompt",
    "Program",
    "ProgramOptions",
    "ProgramStatistics",
    "Publication",
    "Qwen35Config",
    "Refusal",
    "ResourceAxes",
    "ResourceResult",
    "SampledToken",
    "Sampler",
    "SequenceSummary",
    "StateProbe",
    "TargetAssessment",
    "UsedVector",
    "WakeUp",
    "WeightLoader",
    "llama_model",
    "must",
    "prefix_digests",
    "qwen35_model",
    "supported_cpu_isas",
    "xxh3_128",
]

T = TypeVar("T")


def must(result: T | Refusal) -> T:
    """The value of a call whose refusal would be a bug of the caller."""
    assert not isinstance(result, Refusal), str(result)
    return result
