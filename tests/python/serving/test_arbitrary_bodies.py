"""Whatever JSON object comes, the answer is an answer or a refusal that names what is wrong; never a fault of ours."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from starlette.testclient import TestClient

from ninfer.serving.completion.wire import NativeCompletionBody
from ninfer.serving.openai.wire import ChatBody, CompletionBody, RenderFields
from ninfer.serving.served_model import ServedModel
from ninfer.serving.text_wire import DetokenizeBody, TokenizeBody
from tests.python.serving.scripted_engine import ScriptedEngine, answer_events

BODIES: dict[str, type[BaseModel]] = {
    "/v1/chat/completions": ChatBody,
    "/v1/completions": CompletionBody,
    "/completion": NativeCompletionBody,
    "/tokenize": TokenizeBody,
    "/detokenize": DetokenizeBody,
    "/apply-template": RenderFields,
}
NUMBERS = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
SMALL = st.sampled_from([0, 1, 2, -1, 0.5, 1.0, True, False, "", "text", "auto", "none", "function", [], {}, "\0"])
TEXT = st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT | SMALL,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)
CALL = st.fixed_dictionaries({"function": st.fixed_dictionaries({"name": TEXT, "arguments": TEXT | JSON})})
PART = st.fixed_dictionaries({"type": st.sampled_from(["text", "refusal", "image_url"]), "text": TEXT | JSON})
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "developer", "user", "assistant", "tool"])},
    optional={
        "content": TEXT | st.lists(PART, max_size=3) | JSON,
        "reasoning_content": TEXT | JSON,
        "tool_calls": st.lists(CALL, max_size=2) | JSON,
        "tool_call_id": TEXT,
        "more": JSON,
    },
)
TOOL = st.fixed_dictionaries(
    {"type": st.just("function"), "function": st.fixed_dictionaries({"name": TEXT, "parameters": JSON})}
)
LIKELY: dict[str, st.SearchStrategy[Any]] = {
    "messages": st.lists(MESSAGE, min_size=1, max_size=4),
    "tools": st.lists(TOOL, max_size=2),
    "prompt": TEXT | st.lists(st.integers(-1, 2000), max_size=5),
    "content": TEXT,
    "tokens": st.lists(st.integers(-1, 2000), max_size=5),
    "logit_bias": st.dictionaries(st.integers(-1, 2000).map(str), NUMBERS, max_size=3),
    "model": st.sampled_from(["demo", "alias", "other"]),
}


def bodies(model: type[BaseModel]) -> st.SearchStrategy[dict[str, Any]]:
    """Mostly plausible objects, with any of the fields set to anything."""
    required = {
        name: LIKELY[name] for name in ("messages", "prompt", "content", "tokens") if name in model.model_fields
    }
    names = ["x", *(name for name in model.model_fields if name not in required)]
    values = st.sampled_from(names).flatmap(
        lambda name: st.tuples(st.just(name), LIKELY.get(name, SMALL) | SMALL | JSON)
    )
    wild = st.lists(values, max_size=3).map(dict)
    plausible = st.builds(lambda base, more: {**base, **more}, st.fixed_dictionaries(required), wild)
    return plausible | st.dictionaries(st.sampled_from([*model.model_fields, "x"]), JSON, max_size=4)


@pytest.mark.parametrize("path", BODIES)
def test_an_arbitrary_body_is_answered_or_refused(
    client: TestClient, engine: ScriptedEngine, model: ServedModel, path: str
) -> None:
    engine.answer = answer_events(model.frontend.tokenizer, "hello")

    @settings(
        max_examples=150, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow], database=None
    )
    @given(bodies(BODIES[path]))
    def ask(body: dict[str, Any]) -> None:
        before = len(engine.requests)
        response = client.post(path, content=json.dumps(body).encode(errors="replace"))
        assert response.status_code in (200, 400, 404), response.text
        if response.status_code != 200:
            error = response.json()["error"]
            assert error.keys() == {"message", "type", "param", "code"} and error["message"]
            assert len(engine.requests) == before, "a refused request reached the engine"

    ask()
    assert engine.router.open_entries == 0
