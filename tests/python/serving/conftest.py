"""The demo model as the protocols see it: real tokenizer and template, no weights."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import pytest
from starlette.testclient import TestClient

from ninfer.demo import HYBRID_DIRECTORY
from ninfer.engine.model_frontend import load_frontend
from ninfer.engine.sampling_params import default_sampling
from ninfer.serving.app import create_app
from ninfer.serving.event_router import EventRouter
from ninfer.serving.served_model import ServedModel
from ninfer.serving.serving_options import ServingOptions
from ninfer.weights.open_model import open_model
from tests.python.serving.scripted_engine import ScriptedEngine


@pytest.fixture(scope="session")
def model() -> ServedModel:
    files = open_model(HYBRID_DIRECTORY)
    return ServedModel(
        frontend=load_frontend(files, None, lambda: datetime(2026, 1, 2)),
        default_sampling=default_sampling(files.generation),
        max_context=512,
        trained_context=files.config.max_context,
        vocab_size=files.config.vocab_size,
        max_concurrency=4,
        default_max_tokens=100,
    )


@pytest.fixture(scope="session")
def options() -> ServingOptions:
    return ServingOptions(served_model_names=("demo", "alias"), max_body_mib=1, body_timeout_s=5.0)


@pytest.fixture
def engine() -> ScriptedEngine:
    router = EventRouter()
    return ScriptedEngine(router.hand_over, router=router)


@pytest.fixture
def client(engine: ScriptedEngine, model: ServedModel, options: ServingOptions) -> Iterator[TestClient]:
    app = create_app(engine, engine.router, model, options)
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client
