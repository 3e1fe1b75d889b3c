"""Web pages of other origins: who may call, and what they may read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from ninfer.serving.app import create_app
from ninfer.serving.entrance import Entrance
from ninfer.serving.http_protocol import server_config
from ninfer.serving.served_model import ServedModel
from ninfer.serving.serving_options import ServingOptions
from tests.python.serving.scripted_engine import ScriptedEngine

ONE, TWO = "https://one.example", "https://two.example"


@pytest.fixture
def entrance() -> Entrance:
    return Entrance("the model is loading")


@pytest.fixture
def page(options: ServingOptions, entrance: Entrance) -> Iterator[TestClient]:
    """What the server library runs, with everything that stands around the application."""
    config = server_config(entrance, replace(options, cors_origins=(ONE,)), "127.0.0.1", 0)
    with TestClient(config.app, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def opened(entrance: Entrance, engine: ScriptedEngine, model: ServedModel, options: ServingOptions) -> None:
    entrance.open(create_app(engine, engine.router, model, replace(options, api_keys=frozenset({"key"}))))


@pytest.mark.parametrize(("origin", "allowed"), [(ONE, ONE), (TWO, None)])
@pytest.mark.usefixtures("opened")
def test_only_named_origins_may_call(page: TestClient, origin: str, allowed: str | None) -> None:
    for key, status in (("key", 200), ("wrong", 401)):
        response = page.get("/v1/models", headers={"Origin": origin, "x-api-key": key})
        assert response.status_code == status
        assert response.headers.get("access-control-allow-origin") == allowed
    large = page.get("/health", headers={"Origin": origin, "x-large": "x" * (1 << 16)})
    assert (large.status_code, large.headers.get("access-control-allow-origin")) == (431, allowed)


def test_a_page_can_read_that_the_model_is_loading_and_when_to_ask_again(page: TestClient) -> None:
    response = page.post("/v1/completions", json={}, headers={"Origin": ONE})
    assert (response.status_code, response.headers["access-control-allow-origin"]) == (503, ONE)
    shown = response.headers["access-control-expose-headers"].lower().split(", ")
    assert {"x-request-id", "retry-after"} <= set(shown) & response.headers.keys()


@pytest.mark.parametrize("loading", [True, False])
def test_a_page_may_ask_before_it_sends_its_key(
    page: TestClient, request: pytest.FixtureRequest, loading: bool
) -> None:
    if not loading:
        request.getfixturevalue("opened")
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    allowed = page.options("/v1/completions", headers={"Origin": ONE, **asked})
    assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (200, ONE)
    assert "authorization" in allowed.headers["access-control-allow-headers"]
    assert page.options("/v1/completions", headers={"Origin": TWO, **asked}).status_code == 400
