"""Programs on small pools over random models of both families."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.fixtures.seed import SEED
from tests.fixtures.stateful_program import StatefulProgram
from tests.fixtures.tiny_models import TinyHybrid, TinyLlama, TinyShape, write_tiny_model

SHAPES: dict[str, TinyShape] = {"hybrid": TinyHybrid(), "llama": TinyLlama()}

MakeProgram = Callable[..., StatefulProgram]
TokenIds = Callable[[int], list[int]]


def pytest_report_header() -> str:
    return f"stores under models: NINFER_TEST_SEED={SEED}"


@pytest.fixture(scope="session")
def make_program(tmp_path_factory: pytest.TempPathFactory) -> MakeProgram:
    """(family, kv_dtype, **sizes) -> a program with empty stores over that family's random model of this run's seed."""
    root = tmp_path_factory.mktemp("families")

    def make(family: str, kv_dtype: str, **sizes: int) -> StatefulProgram:
        directory = root / family
        if not directory.exists():
            write_tiny_model(directory, SHAPES[family], SEED)
        return StatefulProgram(directory, kv_dtype, **sizes)

    return make


@pytest.fixture
def token_ids(request: pytest.FixtureRequest) -> TokenIds:
    """count -> that many random ids; each test its own, from this run's seed."""
    print(f"NINFER_TEST_SEED={SEED}")  # shown with a failure
    random = np.random.default_rng([SEED, *request.node.nodeid.encode()])

    def draw(count: int) -> list[int]:
        return [int(one) for one in random.integers(3, 300, count)]

    return draw
