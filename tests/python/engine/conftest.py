"""The demo model and a recording client, for the tests of the engine service."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import ninfer
from ninfer.demo import HYBRID_DIRECTORY
from ninfer.engine.loaded_model import LoadedModel
from tests.fixtures.event_recorder import EventRecorder
from tests.python.engine.cached_models import MakePair, pair_maker
from tests.python.engine.chatting_models import ChattingModels


@pytest.fixture(scope="package")
def loaded() -> Iterator[LoadedModel]:
    """The demo model; tests that do not compute replace its program."""
    with ninfer.load(HYBRID_DIRECTORY, threads=1, max_context=4096) as engine:
        yield engine.model


@pytest.fixture
def recorder() -> EventRecorder:
    return EventRecorder()


@pytest.fixture(scope="session")
def make_pair(tmp_path_factory: pytest.TempPathFactory) -> MakePair:
    """See cached_models.pair_maker."""
    return pair_maker(tmp_path_factory.mktemp("cached"))


@pytest.fixture(scope="package")
def chatting_models(tmp_path_factory: pytest.TempPathFactory) -> ChattingModels:
    return ChattingModels(tmp_path_factory.mktemp("chatting"))
