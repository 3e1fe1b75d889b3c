"""Conversations with servers of all kinds: what they report, leave out, and do wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ninfer.cli.remote_conversation import RemoteConversation
from ninfer.cli.remote_server import RemoteServer, event_data
from ninfer.cli.turn_cost import TurnCost
from ninfer.errors import OptionError, RemoteError
from ninfer.frontend.reasoning_parser import ReasoningDelta
from tests.python.cli.odd_server import OddServer, odd_server

LINE_ENDS_OF_UNICODE = "a\u2028b\u0085c\x0cd"


@pytest.fixture
def odd() -> Iterator[OddServer]:
    with odd_server() as odd:
        yield odd


@pytest.fixture
def conversation(odd: OddServer) -> Iterator[RemoteConversation]:
    with RemoteServer(odd.url, None) as server:
        yield RemoteConversation(server, beginning=[{"role": "system", "content": "be brief"}])


def events(*chunks: dict[str, Any], done: bool = True) -> bytes:
    data = [json.dumps(chunk, ensure_ascii=False).encode() for chunk in chunks]
    return b"".join(b"data: " + one + b"\n\n" for one in (*data, *([b"[DONE]"] if done else [])))


def delta(reason: str | None = None, **fields: str) -> dict[str, Any]:
    return {"choices": [{"delta": fields, "finish_reason": reason}]}


def said(conversation: RemoteConversation, text: str = "hello") -> ReasoningDelta:
    return sum(conversation.say(text), ReasoningDelta())


def test_a_turn_is_remembered_with_its_reasoning(odd: OddServer, conversation: RemoteConversation) -> None:
    odd.body = events(delta(reasoning_content="hm"), delta(content=LINE_ENDS_OF_UNICODE), delta("stop"))
    assert said(conversation) == ReasoningDelta(reasoning="hm", content=LINE_ENDS_OF_UNICODE)
    said(conversation, "again")
    first, second = odd.bodies
    assert first == {
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}],
        "model": "first",
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    answer = {"role": "assistant", "content": LINE_ENDS_OF_UNICODE, "reasoning_content": "hm"}
    assert second["messages"] == [*first["messages"], answer, {"role": "user", "content": "again"}]
    conversation.clear()
    said(conversation, "anew")
    assert odd.bodies[2]["messages"] == [first["messages"][0], {"role": "user", "content": "anew"}]


def test_the_cost_is_what_the_server_reports(odd: OddServer, conversation: RemoteConversation) -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": 8, "prompt_tokens_details": {"cached_tokens": 10}}
    timings = {"prompt_n": 20, "prompt_ms": 100.0, "predicted_n": 8, "predicted_ms": 400.0}
    odd.body = events(delta(content="a"), {**delta("length"), "usage": usage, "timings": timings})
    said(conversation)
    assert conversation.last == TurnCost(30, 10, 20, 8, "length", prompt_rate=200.0, answer_rate=20.0)
    assert conversation.last.line() == "[prompt 30 tokens, cached 10, computed 20 at 200/s; answer 8 at 20/s; length]"


@pytest.mark.parametrize("broken", [None, {"prompt_tokens": "many", "prompt_tokens_details": None}])
def test_a_server_that_reports_little_is_no_problem(
    odd: OddServer, conversation: RemoteConversation, broken: Any
) -> None:
    odd.body = events(delta(content="a", reasoning="b"), {**delta("stop"), "usage": broken, "timings": None})
    assert said(conversation) == ReasoningDelta(reasoning="b", content="a")
    assert conversation.last is not None
    assert (conversation.last.prompt_tokens, conversation.last.answer_tokens) == (0, 1)


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (400, b'{"error": {"message": "too long"}}', "answered 400: too long"),
        (422, b'{"detail": "no such field"}', "answered 422: "),
        (500, b"<html>oops</html>", "answered 500: Internal Server Error"),
        (200, events(delta(content="a"), {"error": {"message": "shutdown"}}), ": shutdown"),
        (200, events(delta(content="a"), done=False), "the answer broke off"),
        (200, b"data: {not json}\n\n", "sent what is no event of this protocol"),
        (200, b"data: [1]\n\n", "sent what is no event of this protocol"),
    ],
)
def test_what_goes_wrong_is_said_in_the_servers_words(
    odd: OddServer, conversation: RemoteConversation, status: int, body: bytes, message: str
) -> None:
    odd.status, odd.body = status, body
    with pytest.raises(RemoteError) as raised:
        said(conversation)
    assert str(raised.value).startswith(f"{odd.url}/v1") and message in str(raised.value)
    assert len(conversation.messages) == 1, "the turn is forgotten"


def test_the_model_can_be_chosen_and_has_to_be_where_none_is_listed(odd: OddServer) -> None:
    odd.models = b"[]"
    with RemoteServer(f"{odd.url}/v1/", "key", "second") as server:
        assert (server.url, server.model()) == (f"{odd.url}/v1", "second")
    with RemoteServer(odd.url, None) as server, pytest.raises(RemoteError, match="does not list models"):
        server.model()


@pytest.mark.parametrize(("url", "key"), [("127.0.0.1:8080", None), ("http://x", "a\nb"), ("http://x", "ü")])
def test_what_cannot_be_asked_is_refused(url: str, key: str | None) -> None:
    with pytest.raises(OptionError) as raised:
        RemoteServer(url, key)
    assert key is None or key not in str(raised.value)


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_events_come_in_any_pieces(size: int) -> None:
    stream = "event: x\r\ndata: one\u2028\r\n\r\n: comment\ndata:two\n\nid: 3\ndata: [DONE]\n\ndata: late\n\n".encode()
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    assert list(event_data(pieces)) == ["one\u2028", "two"]
