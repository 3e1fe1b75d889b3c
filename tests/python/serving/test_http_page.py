"""docs/reference/http_api.md says which fields requests have, what they are by default, and how far numbers go."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from starlette.testclient import TestClient

from ninfer.serving.completion.wire import NativeCompletionBody
from ninfer.serving.foreign_fields import FOREIGN_FIELDS
from ninfer.serving.openai.wire import ChatBody, CompletionBody
from ninfer.serving.served_model import ServedModel
from tests.python.serving.scripted_engine import ScriptedEngine, answer_events

PAGE = (Path(__file__).resolve().parents[3] / "docs/reference/http_api.md").read_text("utf-8")
MODELS = {"chat": ChatBody, "text": CompletionBody, "native": NativeCompletionBody}
ASKING: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hello."}]}),
    "text": ("/v1/completions", {"prompt": "hello"}),
    "native": ("/completion", {"prompt": "hello"}),
}
# What else has to be there for a field to be allowed.
TOGETHER = {"top_logprobs": {"logprobs": True}}
CODE = re.compile(r"`([^`]+)`")
RANGE = re.compile(r"^(?:-1, or )?(?:at least (\d+)|(-?[\d.]+) to ([\d.]+))(?:;|$)")


class Row(NamedTuple):
    endpoint: str
    field: str
    default: str
    values: str


def table(section: str) -> list[list[str]]:
    lines = PAGE.partition(f" {section}\n")[2].partition("\n#")[0].splitlines()
    rows = [line.strip("|").split(" | ") for line in lines if line.startswith("| `")]
    assert rows, f"the page has no {section}"
    return [[cell.strip() for cell in row] for row in rows]


def rows() -> Iterator[Row]:
    for names, endpoints, default, values in table("Fields of requests"):
        for endpoint in endpoints.split(", "):
            yield from (Row(endpoint, name, default, values) for name in CODE.findall(names))


ROWS = list(rows())
LITERAL = [row for row in ROWS if CODE.fullmatch(row.default) and row.field != "prompt"]
RANGED = [row for row in ROWS if RANGE.match(row.values) and "characters" not in row.values]


def shown(row: Row) -> str:
    return f"{row.endpoint}-{row.field}"


@pytest.fixture(autouse=True)
def _talking(engine: ScriptedEngine, model: ServedModel) -> None:
    engine.answer = answer_events(model.frontend.tokenizer, "hello")


def ask(client: TestClient, row: Row, value: Any) -> Any:
    path, body = ASKING[row.endpoint]
    return client.post(path, json={**body, **TOGETHER.get(row.field, {}), row.field: value})


@pytest.mark.parametrize("endpoint", MODELS)
def test_the_table_has_every_field_once(endpoint: str) -> None:
    documented = [row.field for row in ROWS if row.endpoint == endpoint]
    assert sorted(documented) == sorted(MODELS[endpoint].model_fields)


def test_the_fields_of_other_servers_are_all_there() -> None:
    documented = [name for row in table("Fields of other servers") for name in CODE.findall(row[0])]
    assert sorted(documented) == sorted(FOREIGN_FIELDS)


def test_what_is_accepted_of_other_servers_is_accepted(client: TestClient) -> None:
    for names, accepted in table("Fields of other servers"):
        for name in CODE.findall(names):
            for value in map(json.loads, CODE.findall(accepted)):
                for endpoint in ASKING:
                    response = ask(client, Row(endpoint, name, "", ""), value)
                    assert response.status_code == 200, (endpoint, name, value, response.text)


@pytest.mark.parametrize("row", LITERAL, ids=shown)
def test_a_default_says_what_an_absent_field_says(client: TestClient, engine: ScriptedEngine, row: Row) -> None:
    path, body = ASKING[row.endpoint]
    absent_body = {**body, **TOGETHER.get(row.field, {})}
    default_body = {**absent_body, row.field: json.loads(row.default.strip("`"))}
    answers = [client.post(path, json=one) for one in (absent_body, default_body)]
    assert [answer.status_code for answer in answers] == [200, 200], [answer.text for answer in answers]
    absent, default = (replace(request, arrived=0.0) for request in engine.requests.values())
    assert default == absent


@pytest.mark.parametrize("row", RANGED, ids=shown)
def test_numbers_go_as_far_as_the_table_says(client: TestClient, row: Row) -> None:
    found = RANGE.match(row.values)
    assert found is not None
    accepted = [json.loads(bound) for bound in found.groups() if bound]
    refused = [accepted[0] - 1, *(bound + 1 for bound in accepted[1:])]
    if row.values.startswith("-1, or "):
        # Zero is between what the two mean.
        accepted, refused = [-1, *accepted], [-2, *refused]
    for value in accepted:
        assert ask(client, row, value).status_code == 200, value
    for value in refused:
        response = ask(client, row, value)
        assert (response.status_code, response.json()["error"]["param"]) == (400, row.field), value
