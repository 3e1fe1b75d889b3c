"""Prompts of every length, sent twice: what is computed the second time, and that all logits are those of the first."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from ninfer.engine.loaded_model import LoadedModel
from ninfer.frontend.chat_prompt import ChatPrompt
from ninfer.frontend.prompt_boundaries import RAW_PROMPT, PromptBoundaries
from tests.fixtures.logits_witness import LogitsWitness
from tests.fixtures.seed import SEED
from tests.fixtures.stepped_engine import SteppedEngine
from tests.python.engine.chatting_models import FAMILIES, ChattingModels

LONGEST = 528
# What is computed again where no checkpoint is worth it (D-33).
FEW_TOKENS = 16
_WORDS = ["river", "soup", "7421", "piano", "Ada", "count", "green."]


class Sender:
    """Sends prompts that begin like no other, so that each is computed from its beginning the first time."""

    def __init__(self, model: LoadedModel, node: str) -> None:
        print(f"NINFER_TEST_SEED={SEED}")
        self.model = model
        self.tokenizer = model.frontend.tokenizer
        self._random = random.Random(f"{SEED} {node}")
        self._witness = LogitsWitness(model.program)
        self.engine = SteppedEngine(replace(model), self._witness)
        self._beginnings = self._random.sample(range(8, self.tokenizer.vocab_size), LONGEST)

    def words(self, count: int) -> str:
        return " ".join(self._random.choices(_WORDS, k=count))

    def raw_prompt(self, length: int) -> list[int]:
        words = self.tokenizer.encode(self.words(length), add_special=False, parse_special=False)
        return [self._beginnings.pop(), *words][:length]

    def computed_again(self, prompt: list[int], boundaries: PromptBoundaries = RAW_PROMPT, shared: int = 0) -> int:
        """Prompt tokens of the second request. shared: the most that the first may have in common with others."""
        self._witness.learning = True
        cold = self.engine.ask(prompt, 2, boundaries)
        self.engine.run()
        self._witness.learning = False
        warm = self.engine.ask(prompt, 2, boundaries)
        self.engine.run()
        assert cold.finished.timings.cache_n <= shared
        assert (self._witness.wrong, warm.tokens) == ([], cold.tokens)
        return warm.finished.timings.prompt_n


@pytest.fixture
def sender(request: pytest.FixtureRequest, chatting_models: ChattingModels) -> Sender:
    return Sender(chatting_models.cached(request.param), request.node.nodeid)


@pytest.mark.parametrize("sender", FAMILIES, indirect=True)
def test_token_ids_of_every_length(sender: Sender) -> None:
    wrong = {}
    for length in range(1, LONGEST + 1):
        computed = sender.computed_again(sender.raw_prompt(length))
        if computed > (1 if length > FEW_TOKENS else length):
            wrong[length] = computed
    assert wrong == {}
    sender.engine.check()


@pytest.mark.parametrize("sender", FAMILIES, indirect=True)
def test_a_long_text_computes_one_token(sender: Sender) -> None:
    prompt = sender.raw_prompt(1602)
    assert len(prompt) == 1602
    assert [sender.computed_again(prompt, shared=1601) for _ in range(2)] == [1, 1]


@pytest.mark.parametrize("sender", FAMILIES, indirect=True)
def test_questions_of_every_length(sender: Sender) -> None:
    """As far as words have such lengths; every third of them."""
    wrong: dict[int, int] = {}
    length, words = 0, SEED % 3
    while length < LONGEST:
        chat = sender.model.frontend.encode_chat(ChatPrompt([{"role": "user", "content": sender.words(words)}]))
        length, words = len(chat.token_ids), words + 3
        # The first time it may share a beginning with another one, by chance.
        computed = sender.computed_again(chat.token_ids, chat.boundaries, shared=30)
        if computed > FEW_TOKENS:
            wrong[length] = computed
    assert wrong == {}
    sender.engine.check()
