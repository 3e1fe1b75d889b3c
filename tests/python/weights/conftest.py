"""Random model directories shared by the tests of model files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.fixtures.seed import SEED
from tests.fixtures.tiny_models import TinyFiles, TinyHybrid, TinyLlama, write_tiny_model


def pytest_report_header() -> str:
    return f"random model files: NINFER_TEST_SEED={SEED}"


@pytest.fixture(autouse=True)
def _seed_beside_a_failure() -> None:
    print(f"NINFER_TEST_SEED={SEED}")  # shown with a failure


@pytest.fixture(scope="session")
def tiny_hybrid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hybrid in one file, written with transformers."""
    return write_tiny_model(tmp_path_factory.mktemp("hybrid") / "model", TinyHybrid(), SEED)


@pytest.fixture(scope="session")
def tiny_sharded_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama model in several shards with an index."""
    files = TinyFiles(shard_bytes=100_000)
    return write_tiny_model(tmp_path_factory.mktemp("llama") / "model", TinyLlama(), SEED, files)


@pytest.fixture
def hybrid(tiny_hybrid: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(tiny_hybrid, tmp_path / "hybrid"))
