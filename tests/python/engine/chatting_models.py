"""Models that talk through a chat template: the demo model, and a random Llama behind its tokenizer and template."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ninfer.config.engine_options import EngineOptions
from ninfer.demo import HYBRID_DIRECTORY
from ninfer.engine.engine import load_model
from ninfer.engine.loaded_model import LoadedModel
from tests.fixtures.seed import SEED
from tests.fixtures.tiny_models import TinyFiles, TinyLlama, write_tiny_model
from tests.python.engine.cached_models import STORAGES

FAMILIES = ("hybrid", "llama")
_SIZES: dict[str, Any] = {
    "threads": 1,
    "max_context": 4096,
    "kv_capacity": 131072,
    "prefill_chunk": 128,
    "host_cache_mib": 256,
}
_FRONTEND = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


class ChattingModels:
    """A cached model is loaded anew for who asks; a cold one once. All have the same storage, another one every run."""

    def __init__(self, root: Path) -> None:
        self._llama = root / "llama"
        write_tiny_model(self._llama, TinyLlama(vocab=1536), SEED, TinyFiles(tokenizer=False))
        for file in _FRONTEND:
            shutil.copy(HYBRID_DIRECTORY / file, self._llama / file)
        self._cold: dict[str, LoadedModel] = {}
        storage = sorted(STORAGES)[SEED % len(STORAGES)]
        print(f"NINFER_TEST_SEED={SEED}, storage {storage}")
        self._weights, self._kv_dtype = STORAGES[storage]

    def cached(self, family: str, **more: Any) -> LoadedModel:
        path = HYBRID_DIRECTORY if family == "hybrid" else self._llama
        sizes = {**_SIZES, "weights": self._weights, "kv_dtype": self._kv_dtype}
        return load_model(path, EngineOptions(**{**sizes, **more}), datetime.now)

    def cold(self, family: str) -> LoadedModel:
        if family not in self._cold:
            self._cold[family] = self.cached(family, context_cache=False)
        return replace(self._cold[family])
