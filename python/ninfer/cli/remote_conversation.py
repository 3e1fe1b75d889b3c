"""A conversation with the model of a server that speaks the protocol of OpenAI."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

from ninfer.cli.conversation import Conversation, Message
from ninfer.cli.remote_server import RemoteServer
from ninfer.cli.turn_cost import TurnCost, per_second
from ninfer.errors import RemoteError
from ninfer.frontend.reasoning_parser import ReasoningDelta


@dataclass
class RemoteConversation(Conversation):
    """An answer that is left closes its connection, which is how a server learns that nobody listens any more."""

    server: RemoteServer

    def _answer(self, messages: list[Message]) -> Generator[ReasoningDelta]:
        """Raises RemoteError."""
        body = {"messages": messages, **self.sampling}
        if self.template_kwargs:
            body["chat_template_kwargs"] = self.template_kwargs
        account = _Account()
        for chunk in self.server.stream_chat(body):
            yield account.take(chunk)
        if account.finish_reason is None:
            raise RemoteError(f"{self.server.url}: the answer broke off")
        self.last = account.cost(account.finish_reason)


class _Account:
    """Adds up what the chunks of one answer say about it. Servers differ in what they report, so that a clock of ours
    measures the answer where theirs is silent."""

    def __init__(self) -> None:
        self.finish_reason: str | None = None
        self._report: dict[str, dict[str, Any]] = {}
        self._pieces = 0
        self._first = self._latest = time.monotonic()

    def take(self, chunk: dict[str, Any]) -> ReasoningDelta:
        for name in ("usage", "timings", "reuse"):
            if isinstance(chunk.get(name), dict):
                self._report[name] = chunk[name]
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
        cost = TurnCost.reported(self._report, finish_reason)
        answer = cost.answer_tokens or self._pieces
        measured = per_second(answer - 1, (self._latest - self._first) * 1e3)
        return replace(cost, answer_tokens=answer, answer_rate=cost.answer_rate or measured)
