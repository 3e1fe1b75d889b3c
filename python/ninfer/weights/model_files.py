"""A model as its files describe it: configuration, tensors, defaults; everything checked, nothing loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ninfer.config.model_config import ModelConfig
from ninfer.weights.tensor_source import TensorSource


@dataclass(frozen=True)
class GenerationDefaults:
    """What the model's author recommends; None where the files are silent."""

    eos_ids: tuple[int, ...] = ()
    bos_id: int | None = None
    pad_id: int | None = None
    do_sample: bool | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None


@dataclass(frozen=True)
class ModelFiles:
    """An opened model.

    `tensors` holds exactly the names and shapes of `expected_tensors(config)`. `path` is the directory (kind hf) or
    the file (kind gguf); the frontend reads tokenizer and template from there, or from `gguf_metadata`.
    """

    path: Path
    kind: Literal["hf", "gguf"]
    config: ModelConfig
    tensors: Mapping[str, TensorSource]
    generation: GenerationDefaults
    gguf_metadata: Mapping[str, object] | None = None
