"""What `ninfer models inspect` tells about a model."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from ninfer.config.model_config import ModelConfig
from ninfer.weights.open_model import open_model


@dataclass(frozen=True)
class ModelSummary:
    """Facts of an opened model; `encodings` maps each stored encoding to its number of values."""

    path: Path
    kind: str
    config: ModelConfig
    parameters: int
    stored_bytes: int
    encodings: dict[str, int]


def summarise_model(path: Path) -> ModelSummary:
    """Opens the model at `path` (ModelFileError, ModelNotFoundError) and sums up what its files hold."""
    model = open_model(path)
    encodings: Counter[str] = Counter()
    for tensor in model.tensors.values():
        encodings[tensor.encoding] += math.prod(tensor.shape)
    stored = sum(tensor.nbytes for tensor in model.tensors.values())
    return ModelSummary(path, model.kind, model.config, encodings.total(), stored, dict(encodings))
