"""Where the tokens of a completion stand in its text."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from ninfer.engine.events import TokenEvent
from ninfer.engine.output_session import TokenLogprob
from ninfer.serving.served_model import ServedModel
from tests.python.serving.event_stream import stream_chunks
from tests.python.serving.scripted_engine import ScriptedEngine, answer_events


@pytest.mark.parametrize("stream", [False, True])
def test_completions_answer_text_with_offsets(
    client: TestClient, engine: ScriptedEngine, model: ServedModel, stream: bool
) -> None:
    engine.answer = answer_events(model.frontend.tokenizer, "one two three", logprobs=True, reason="length")
    response = client.post("/v1/completions", json={"prompt": "zero", "logprobs": 1, "stream": stream})
    chunks = stream_chunks(response.text) if stream else [response.json()]
    choices = [chunk["choices"][0] for chunk in chunks]
    assert "".join(choice["text"] for choice in choices) == "one two three"
    assert choices[-1]["finish_reason"] == "length"
    shown = [choice["logprobs"] for choice in choices if choice["logprobs"]]
    tokens = [token for part in shown for token in part["tokens"]]
    offsets = [offset for part in shown for offset in part["text_offset"]]
    assert "".join(tokens) == "one two three"
    assert offsets == [len("".join(tokens[:index])) for index in range(len(tokens))]
    assert chunks[-1]["usage"]["prompt_tokens"] == 9


@pytest.mark.parametrize("stream", [False, True])
def test_offsets_count_the_characters_of_the_answer_and_not_those_of_single_tokens(
    client: TestClient, engine: ScriptedEngine, model: ServedModel, stream: bool
) -> None:
    tokenizer = model.frontend.tokenizer
    [parts, end] = [tokenizer.encode("é", add_special=False, parse_special=False), min(tokenizer.eos_ids)]
    assert len(parts) == 2, "the demo model has no token for this character"
    [a, b] = (tokenizer.encode(one, add_special=False, parse_special=False) for one in "ab")
    # An end token that does not count has no text; "b" is held back, since it may begin a stop string.
    texts = [(*a, "a"), (parts[0], ""), (parts[1], "é"), (end, ""), (*b, ""), (*a, "ba")]
    *_, finished = answer_events(tokenizer, "", reason="length")
    events = [TokenEvent(token, text, TokenLogprob(token, -0.25, ())) for token, text in texts]
    engine.answer = [*events, finished]
    body = {"prompt": "zero", "logprobs": 0, "ignore_eos": True, "stop": ["bb"], "stream": stream}
    response = client.post("/v1/completions", json=body)
    chunks = stream_chunks(response.text) if stream else [response.json()]
    shown = [chunk["choices"][0]["logprobs"] for chunk in chunks if chunk["choices"][0]["logprobs"]]
    offsets = [offset for part in shown for offset in part["text_offset"]]
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == "aéba"
    assert offsets == [0, 1, 1, 2, 2, 3]
