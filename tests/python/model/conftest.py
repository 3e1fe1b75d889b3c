"""Random models and their oracles, made once per session and shared by the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from transformers import PreTrainedModel

from tests.fixtures.model_makers import MakeDirectory, MakeReference
from tests.fixtures.seed import SEED
from tests.fixtures.tiny_models import TinyFiles, TinyShape, make_tiny_model, write_tiny_model


def pytest_report_header() -> str:
    return f"random models: NINFER_TEST_SEED={SEED}"


@pytest.fixture
def seed(record_property: Callable[[str, object], None]) -> int:
    print(f"NINFER_TEST_SEED={SEED}")  # shown with a failure
    record_property("seed", SEED)
    return SEED


@pytest.fixture(scope="session")
def tiny_directory(tmp_path_factory: pytest.TempPathFactory) -> MakeDirectory:
    """(shape, files=None) -> the directory of the random model of that shape and this run's seed."""
    made: dict[tuple[TinyShape, TinyFiles], Path] = {}

    def make(shape: TinyShape, files: TinyFiles = TinyFiles()) -> Path:  # noqa: B008 (frozen)
        if (shape, files) not in made:
            made[shape, files] = write_tiny_model(tmp_path_factory.mktemp("tiny") / "model", shape, SEED, files)
        return made[shape, files]

    return make


@pytest.fixture(scope="session")
def tiny_reference() -> MakeReference:
    """shape -> the transformers model whose weights `tiny_directory` wrote."""
    made: dict[TinyShape, PreTrainedModel] = {}

    def make(shape: TinyShape) -> PreTrainedModel:
        if shape not in made:
            made[shape] = make_tiny_model(shape, SEED)
        return made[shape]

    return make
