"""Random model directories shared by the tests of model files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.tiny_models import TinyFiles, TinyHybrid, TinyLlama, write_tiny_model

SEED = 20


@pytest.fixture(scope="session")
def tiny_hybrid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hybrid in one file, written with transformers."""
    return write_tiny_model(tmp_path_factory.mktemp("hybrid") / "model", TinyHybrid(), SEED)


@pytest.fixture(scope="session")
def tiny_sharded_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama model in several shards with an index."""
    files = TinyFiles(shard_bytes=100_000)
    return write_tiny_model(tmp_path_factory.mktemp("llama") / "model", TinyLlama(), SEED, files)
