"""The pinned general chat model as a file, for benches and tests."""

from __future__ import annotations

import os
from pathlib import Path

from ninfer.config.store_location import models_directory
from ninfer.model_store.model_store import ModelStore
from ninfer.model_store.pull import pull


def smollm2_file() -> Path:
    """SmolLM2-135M-Instruct.Q4_1.gguf in the user's model store, pulled on first use (98 MB)."""
    return pull("smollm2", ModelStore(models_directory(os.environ)), os.environ)
