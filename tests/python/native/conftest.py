"""What the tests of the native door share: the demo model's decoder, and a planning session on a test's own program."""

from __future__ import annotations

import pytest

from ninfer import native
from ninfer.demo import HYBRID_DIRECTORY
from ninfer.engine.native_model import load_native_model
from ninfer.weights.open_model import open_model


@pytest.fixture(scope="module")
def model() -> native.ModelSource:
    return load_native_model(open_model(HYBRID_DIRECTORY), "auto", 1, None)


@pytest.fixture
def session(program: native.Program) -> native.PlanningSession:
    return native.PlanningSession(program)
