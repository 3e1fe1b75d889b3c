"""Tiny models of both families in every storage, each loaded once with a prompt cache and once without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ninfer.config.engine_options import EngineOptions, KvDtypeOption, WeightsOption
from ninfer.engine.engine import load_model
from ninfer.engine.loaded_model import LoadedModel
from tests.fixtures.seed import SEED
from tests.fixtures.tiny_models import TinyHybrid, TinyLlama, TinyShape, write_tiny_model

SHAPES: dict[str, TinyShape] = {"hybrid": TinyHybrid(), "llama": TinyLlama()}
STORAGES: dict[str, tuple[WeightsOption, KvDtypeOption]] = {
    "f32": ("f32", "f32"),
    "bf16": ("bf16", "bf16"),
    "q8": ("q8", "int8"),
}
SIZES: dict[str, Any] = {
    "threads": 2,
    "max_context": 4096,
    "max_concurrency": 4,
    "kv_capacity": 65536,
    "prefill_chunk": 192,
    "default_max_tokens": 64,
    "host_cache_mib": 64,
}


@dataclass(frozen=True)
class ModelPair:
    """The same weights twice: `cached` and `cold`, with a program each."""

    cached: LoadedModel
    cold: LoadedModel

    @property
    def has_state(self) -> bool:
        return bool(self.cached.program.statistics().state_image_bytes)


MakePair = Callable[..., ModelPair]


def pair_maker(root: Path) -> MakePair:
    """(family, storage, **options) -> a fresh pair; directories and cold programs are made once."""
    cold: dict[tuple[str, str], LoadedModel] = {}

    def make(family: str, storage: str = "f32", **more: Any) -> ModelPair:
        directory = root / family
        if not directory.exists():
            write_tiny_model(directory, SHAPES[family], SEED)
        weights, kv_dtype = STORAGES[storage]
        options = EngineOptions(weights=weights, kv_dtype=kv_dtype, **{**SIZES, **more})
        if (family, storage) not in cold:
            plain = EngineOptions(weights=weights, kv_dtype=kv_dtype, context_cache=False, **SIZES)
            cold[family, storage] = load_model(directory, plain, datetime.now)
        return ModelPair(load_model(directory, options, datetime.now), replace(cold[family, storage]))

    return make
