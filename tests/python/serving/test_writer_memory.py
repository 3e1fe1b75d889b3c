"""What a writer keeps of an answer: nothing if it streams, else what is sent, written as it came."""

from __future__ import annotations

import gc
import random
from dataclasses import replace
from typing import Any

import orjson
import pytest

from ninfer.engine.events import Finished, PrefillProgress, TokenEvent
from ninfer.engine.sampling_params import SamplingParams
from ninfer.serving.completion.stream import NativeCompletionWriter
from ninfer.serving.generation_request import GenerationRequest
from ninfer.serving.openai.chat_stream import ChatWriter
from ninfer.serving.openai.completion_stream import CompletionWriter
from ninfer.serving.served_model import ServedModel
from ninfer.serving.server import WriterOf
from tests.fixtures.seed import SEED
from tests.python.serving.scripted_engine import answer_events

WRITERS = (ChatWriter, CompletionWriter, NativeCompletionWriter)


def events_of(model: ServedModel) -> list[TokenEvent | Finished]:
    print(f"NINFER_TEST_SEED={SEED}")
    text = " ".join(random.Random(SEED).choices(("one", "é", "</think>", "😀"), k=500))
    events = answer_events(model.frontend.tokenizer, text, logprobs=True)
    return [event for event in events if isinstance(event, TokenEvent | Finished)]


def reachable(writer: Any) -> list[object]:
    found: list[object] = [writer.__dict__]
    for _ in range(3):
        found += [one for one in gc.get_referents(*found) if isinstance(one, list | dict | tuple | str)]
    return found


@pytest.mark.parametrize("writer_of", WRITERS)
def test_a_stream_keeps_nothing_and_the_whole_is_its_sum(model: ServedModel, writer_of: WriterOf) -> None:
    events = events_of(model)
    request = GenerationRequest([1], SamplingParams(logprobs=1), "demo", stream=True)
    streaming, whole = writer_of(request, model), writer_of(replace(request, stream=False), model)
    streaming.progress(PrefillProgress(1, 1))
    streamed: list[Any] = []
    for event in events:
        told = (event,)
        if isinstance(event, Finished):
            streamed += streaming.finished(*told)
            assert whole.finished(*told) is not None
        else:
            streamed += streaming.token(*told)
            assert whole.token(*told) == []
    kept = [one for one in reachable(streaming) if len(one) > 100 and one is not model]  # type: ignore[arg-type]
    assert kept == []
    # The largest parts of the whole answer are written already.
    answer = whole.whole()
    entries = top_entries(answer)
    assert len(entries) > 500 and all(isinstance(entry, orjson.Fragment) for entry in entries)
    assert top_entries(orjson.loads(orjson.dumps(answer))) == [one for chunk in streamed for one in top_entries(chunk)]


def top_entries(chunk: Any) -> list[Any]:
    """The log-probabilities in an answer or a chunk, in whichever form."""
    if "completion_probabilities" in chunk:
        found: list[Any] = chunk["completion_probabilities"]
        return found
    entries: list[Any] = []
    for choice in chunk.get("choices", ()):
        logprobs = choice["logprobs"] or {}
        entries += logprobs.get("content") or logprobs.get("top_logprobs") or []
    return entries
