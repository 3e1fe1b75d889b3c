"""A conversation with the model of a server that speaks the protocol of OpenAI."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ninfer.cli.conversation import Message, answer_message
from ninfer.cli.remote_server import RemoteServer
from ninfer.cli.turn_cost import TurnCost, per_second
from ninfer.errors import RemoteError
from ninfer.frontend.reasoning_parser import ReasoningDelta

# Computing so many again takes no time that anybody notices.
_FEW_TOKENS = 16


@dataclass
class RemoteConversation:
    """`say` adds the user's message and streams the answer; a turn that is interrupted or refused leaves no trace.

    Closing the generator of `say` closes its connection, which is how a server learns that nobody listens any more.
    """

    server: RemoteServer
    beginning: list[Message] = field(default_factory=list)
    sampling: dict[str, Any] = field(default_factory=dict)
    template_kwargs: dict[str, Any] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    last: TurnCost | None = None

    def __post_init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forgets everything but the beginning."""
        self.messages = list(self.beginning)

    def say(self, text: str) -> Generator[ReasoningDelta]:
        """Raises RemoteError."""
        messages = [*self.messages, {"role": "user", "content": text}]
        body = {"messages": messages, **self.sampling}
        if self.template_kwargs:
            body["chat_template_kwargs"] = self.template_kwargs
        whole, account = ReasoningDelta(), _Account()
        for chunk in self.server.stream_chat(body):
            delta = account.take(chunk)
            whole += delta
            yield delta
        if account.finish_reason is None:
            raise RemoteError(f"{self.server.url}: the answer broke off")
        self.messages = [*messages, answer_message(whole)]
        self.last = account.cost(account.finish_reason)


class _Account:
    """Adds up what the chunks of one answer say about it. Servers differ in what they report, so that a clock of ours
    measures the answer where theirs is silent."""

    def __init__(self) -> None:
        self.finish_reason: str | None = None
        self._usage: dict[str, Any] = {}
        self._timings: dict[str, Any] = {}
        self._reuse: dict[str, Any] = {}
        self._pieces = 0
        self._first = self._latest = time.monotonic()

    def take(self, chunk: dict[str, Any]) -> ReasoningDelta:
        self._usage = chunk.get("usage") or self._usage
        self._timings = chunk.get("timings") or self._timings
        reuse = chunk.get("reuse")
        self._reuse = reuse if isinstance(reuse, dict) else self._reuse
        whole = ReasoningDelta()
        for choice in chunk.get("choices") or ():
            self.finish_reason = choice.get("finish_reason") or self.finish_reason
            delta = choice.get("delta") or {}
            reasoning = delta.get("reasoning_content") or delta.get("reasoning") or ""
            whole += ReasoningDelta(reasoning=reasoning, content=delta.get("content") or "")
        if whole.reasoning or whole.content:
            self._latest = time.monotonic()
            self._first = self._latest if self._pieces == 0 else self._first
            self._pieces += 1
        return whole

    def cost(self, finish_reason: str) -> TurnCost:
        timings = self._timings
        prompt = _count(self._usage, "prompt_tokens")
        cached = _count(self._usage.get("prompt_tokens_details") or {}, "cached_tokens")
        answer = _count(self._usage, "completion_tokens") or self._pieces
        return TurnCost(
            prompt_tokens=prompt,
            cached=cached,
            computed=_count(timings, "prompt_n") if "prompt_n" in timings else prompt - cached,
            answer_tokens=answer,
            finish_reason=finish_reason,
            prompt_rate=_rate(timings, "prompt_n", "prompt_ms"),
            answer_rate=_rate(timings, "predicted_n", "predicted_ms")
            or per_second(answer - 1, (self._latest - self._first) * 1e3),
            origin=_origin(self._reuse),
            shortfall=_shortfall(self._reuse),
        )


def _origin(reuse: dict[str, Any]) -> str:
    source = reuse.get("source")
    return f"{source}, {reuse.get('path')}" if source and source != "root" else ""


def _shortfall(reuse: dict[str, Any]) -> str:
    """Why there is not more; no words for a prompt of which nothing is kept, or a few tokens."""
    reason, shared = reuse.get("reason"), _count(reuse, "shared_tokens")
    if shared:
        return f"{shared} are kept, but {reason}" if shared - _count(reuse, "frontier") > _FEW_TOKENS else ""
    return "" if reason in (None, "no_match") else str(reason)


def _count(values: dict[str, Any], name: str) -> int:
    with suppress(TypeError, ValueError):
        return int(values.get(name) or 0)
    return 0


def _rate(timings: dict[str, Any], count: str, milliseconds: str) -> float | None:
    with suppress(TypeError, ValueError):
        return per_second(int(timings.get(count) or 0), float(timings.get(milliseconds) or 0.0))
    return None
