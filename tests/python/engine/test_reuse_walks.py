"""People who do what comes to their mind: go on, ask again, change a question, begin anew, go back to where they were.
Whatever they did before, each request reuses what it ideally can."""

from __future__ import annotations

import random

import pytest

from tests.fixtures.seed import SEED
from tests.fixtures.text_talk import Client, Message, TextTalk
from tests.python.engine.chatting_models import FAMILIES, ChattingModels

STEPS = 25
LONGEST = 3000


class Walk:
    def __init__(self, talk: TextTalk, seed: str) -> None:
        self.talk = talk
        self._random = random.Random(seed)
        self._systems = [{"role": "system", "content": talk.text(words)} for words in (4, 30, 80)]
        self._saved: list[list[Message]] = []
        self._now: list[Message] = []
        self.trace: list[str] = []

    def step(self) -> None:
        if not self._now or len(self.talk.encoded(self._now).token_ids) > LONGEST:
            self._now = [self._random.choice(self._systems)]
        move = self._random.choice((self._go_on, self._ask_again, self._edit, self._begin, self._come_back))
        self.trace.append(move.__name__)
        move()
        self._saved.append(self._now)

    def _go_on(self) -> None:
        self._now = self.talk.turn(self._now, self._words())

    def _ask_again(self) -> None:
        if self._now[-1]["role"] == "assistant":
            self._now = [*self._now[:-1], self.talk.chat(self._now[:-1])]

    def _edit(self) -> None:
        """The first question or the last one, from some place in it."""
        questions = [place for place, message in enumerate(self._now) if message["role"] == "user"]
        if questions:
            place = self._random.choice((questions[0], questions[-1]))
            text: str = self._now[place]["content"]
            kept = text[: self._random.randrange(len(text) + 1)]
            asked = [*self._now[:place], {"role": "user", "content": kept + self.talk.text(self._words())}]
            self._now = [*asked, self.talk.chat(asked)]

    def _begin(self) -> None:
        begun = [self._random.choice(self._systems)] if self._random.random() < 0.8 else []
        self._now = self.talk.turn(begun, self._words())

    def _come_back(self) -> None:
        if self._saved:
            self._now = self.talk.turn(self._random.choice(self._saved), self._words())

    def _words(self) -> int:
        return self._random.choice((0, 2, 5, 15, 40, 120))


@pytest.mark.parametrize("number", [0, *(pytest.param(number, marks=pytest.mark.slow) for number in range(1, 20))])
@pytest.mark.parametrize("keeps_reasoning", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_walk(chatting_models: ChattingModels, family: str, keeps_reasoning: bool, number: int) -> None:
    seed = f"{SEED} {family} {keeps_reasoning} {number}"
    print(f"NINFER_TEST_SEED={SEED}")
    models = chatting_models.cached(family), chatting_models.cold(family)
    walk = Walk(TextTalk(*models, seed, Client(keeps_reasoning), max_tokens=24), seed)
    for _ in range(STEPS):
        try:
            walk.step()
        except AssertionError as error:
            error.add_note(f"after {walk.trace}")
            raise
    walk.talk.engine.warm.check()
