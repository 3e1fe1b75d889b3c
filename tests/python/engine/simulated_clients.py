"""Seeded clients of a stepped engine: they talk, edit, branch, repeat themselves, leave and come back."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from ninfer.engine.events import Cancelled, Finished
from ninfer.engine.request import CacheHints
from tests.fixtures.stepped_engine import Answer, ComparedEngine
from tests.fixtures.token_chat import FIRST_CONTENT_ID, LAST_CONTENT_ID, Message, render

SYSTEMS = 3
MOST_MESSAGES = 9
COUNTS = (1, 3, 8, 24)
# What few ask for, and nobody waits for: an answer that needs more than half of all pages.
GREEDY_PROMPT, GREEDY_COUNT = [12] * 100, 800


@dataclass
class Asked:
    """One request that is on its way."""

    answer: Answer
    prompt: list[int]
    count: int
    messages: list[Message] | None


@dataclass
class SimulatedClient:
    """Asks one thing after the other; `ends` counts what became of them."""

    engine: ComparedEngine
    dice: random.Random
    systems: list[Message]
    name: str
    messages: list[Message] = field(default_factory=list)
    asked: Asked | None = None
    ends: dict[str, int] = field(default_factory=dict)

    def act(self) -> None:
        """At most one thing per boundary."""
        if self.asked is None:
            if self.dice.random() < 0.3:
                self._ask()
        elif self.asked.answer.ended:
            self._take(self.asked)
        elif self.dice.random() < (0.03 if self.asked.count == GREEDY_COUNT else 0.015):
            self.engine.warm.service.cancel(self.asked.answer.request_id, "the client left")

    def words(self, most: int) -> list[int]:
        count = self.dice.randrange(1, most)
        return [self.dice.randrange(FIRST_CONTENT_ID, LAST_CONTENT_ID) for _ in range(count)]

    def _ask(self) -> None:
        count = self.dice.choice(COUNTS)
        hints = self.dice.choice([CacheHints(), CacheHints(session_id=self.name), CacheHints(salt=self.name)])
        if self.dice.random() < 0.1:
            hints = CacheHints(use=False)
        if self.dice.random() < 0.25:
            prompt = self.words(300)
            if self.dice.random() < 0.3:
                prompt, count = GREEDY_PROMPT, GREEDY_COUNT
            self.asked = Asked(self.engine.ask(prompt, count, cache=hints), prompt, count, None)
            return
        self.messages = self._next_messages()
        chat = render(self.messages)
        answer = self.engine.ask(chat.ids, count, chat.boundaries, cache=hints)
        self.asked = Asked(answer, chat.ids, count, self.messages)

    def _next_messages(self) -> list[Message]:
        """Goes on, or edits an earlier message, or asks the same again, or begins anew."""
        choice = self.dice.random()
        if len(self.messages) < 2 or len(self.messages) > MOST_MESSAGES or choice < 0.1:
            return [self.dice.choice(self.systems), ("user", self.words(60))]
        if choice < 0.2:
            return self.messages if self.messages[-1][0] != "assistant" else self.messages[:-1]
        if choice < 0.35:
            kept = self.dice.randrange(1, len(self.messages))
            return [*self.messages[:kept], ("user", self.words(60))]
        return [*self.messages, (self.dice.choice(["user", "tool"]), self.words(60))]

    def _take(self, asked: Asked) -> None:
        last = asked.answer.events[-1]
        kind = type(last).__name__
        self.ends[kind] = self.ends.get(kind, 0) + 1
        if isinstance(last, Finished):
            self.engine.assert_same(asked.answer, asked.prompt, asked.count)
            if asked.messages is not None:
                self.messages = [*asked.messages, ("assistant", asked.answer.tokens)]
        else:
            assert last == Cancelled("the client left"), last
            expected = self.engine.expected(asked.prompt, asked.count)
            assert asked.answer.tokens == expected[: len(asked.answer.tokens)]
        self.asked = None
