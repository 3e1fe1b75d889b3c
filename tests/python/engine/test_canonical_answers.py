"""Canonical output boundaries (D-18) of real answers: tokens become text, the text becomes history, and the history's
ids agree with the tokens exactly as far as was said when the answer ended."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from ninfer.demo import HYBRID_DIRECTORY
from ninfer.engine.engine import Engine
from ninfer.engine.generation_plan import plan_generation
from ninfer.engine.loaded_model import LoadedModel
from ninfer.engine.output_session import OutputSession
from ninfer.engine.sampling_params import SamplingParams
from ninfer.frontend.chat_encoder import EncodedChat
from ninfer.frontend.chat_prompt import ChatPrompt
from ninfer.frontend.reasoning_parser import prompt_opens_reasoning
from tests.fixtures.ideal_reuse import common_prefix
from tests.fixtures.seed import SEED
from tests.fixtures.text_talk import Client

STEPS = [
    (conversation, step)
    for conversation in json.loads((HYBRID_DIRECTORY / "expected.json").read_text("utf-8"))
    for step in conversation["steps"]
]
# From what the model was taught to say to noise, which it spells in tokens that no tokenizer would choose.
TEMPERATURES = (0.0, 1.0, 2.0, 4.0, 10_000.0)
RESULT = {"role": "tool", "tool_call_id": "call0", "content": "noted."}


@dataclass(frozen=True)
class Spoken:
    """tokens: with the one that ended it. canonical: as the engine said."""

    prompt: EncodedChat
    tokens: list[int]
    text: str
    canonical: int


class Speaker:
    def __init__(self, model: LoadedModel) -> None:
        self.model = model
        self.engine = Engine(model)

        self.ends = model.frontend.tokenizer.eos_ids

    def spoken_again(
        self,
        case: dict[str, Any],
        messages: list[dict[str, Any]],
        drawn: random.Random,
        temperature: float,
        stop: tuple[str, ...] = (),
    ) -> tuple[Spoken, EncodedChat]:
        """An answer, and the same turn one tool round later: what was said is all in the prompt."""
        params = SamplingParams(
            max_tokens=drawn.choice((3, 30, 120)), temperature=temperature, seed=drawn.getrandbits(32), stop=stop
        )
        spoken = self._spoken(self._encoded(case, messages), params)
        return spoken, self._encoded(case, [*messages, _message(spoken), RESULT])

    def is_verbatim(self, spoken: Spoken, history: EncodedChat) -> bool:
        """Whether client and template changed nothing. Control tokens within content are text to both."""
        sent = json.dumps(_message(spoken))
        return history.text.startswith(f"{spoken.prompt.text}{spoken.text}<|im_end|>") and not any(
            text in sent for text in self.model.frontend.tokenizer.special_texts
        )

    def whole_characters(self, tokens: Sequence[int]) -> int:
        """How many of the tokens end before a character that is not whole. Bytes that are none are shown as U+FFFD,
        whose own first byte they may happen to be."""
        pieces = [self.model.frontend.tokenizer.token_bytes(token) for token in tokens]
        ends = [count for count in range(len(pieces) + 1) if _is_text(b"".join(pieces[:count]))]
        return ends[-1]

    def _spoken(self, prompt: EncodedChat, params: SamplingParams) -> Spoken:
        plan = plan_generation(self.model, prompt.token_ids, params)
        tokens = [step.token_id for step in self.engine.start(prompt.token_ids, params).steps()]
        session = OutputSession(self.model.frontend.tokenizer, plan, self.model.files.config.vocab_size)
        sampled: list[Any] = [SimpleNamespace(id=token, logprob=0.0, top_logprobs=[]) for token in tokens]
        text = "".join(session.push(token).text for token in sampled)
        return Spoken(prompt, tokens, text, session.canonical_tokens)

    def _encoded(self, case: dict[str, Any], messages: list[dict[str, Any]]) -> EncodedChat:
        thinking = {"enable_thinking": case["enable_thinking"]}
        return self.model.frontend.encode_chat(ChatPrompt(messages, case["tools"], template_kwargs=thinking))


def _is_text(characters: bytes) -> bool:
    try:
        characters.decode()
    except UnicodeDecodeError:
        return False
    return True


def _message(spoken: Spoken) -> dict[str, Any]:
    return Client().message(spoken.text, opened=prompt_opens_reasoning(spoken.prompt.text))


@pytest.fixture(scope="module")
def speaker(loaded: LoadedModel) -> Speaker:
    return Speaker(loaded)


def agreeing(spoken: Spoken, history: EncodedChat) -> int:
    """Tokens of the answer that the history has again."""
    prompt = spoken.prompt.token_ids
    # Blanks at the end of the prompt may be one token with those that begin the answer.
    same = common_prefix(prompt, history.token_ids)
    return common_prefix(spoken.tokens, history.token_ids[len(prompt) :]) if same == len(prompt) else 0


def test_answers_come_back_as_far_as_was_said(speaker: Speaker) -> None:
    print(f"NINFER_TEST_SEED={SEED}")
    drawn = random.Random(SEED)
    whole = differing = 0
    for (case, step), temperature in product(STEPS, TEMPERATURES):
        spoken, history = speaker.spoken_again(case, step["messages"], drawn, temperature)
        if not speaker.is_verbatim(spoken, history):
            continue
        said = len(spoken.tokens) - (spoken.tokens[-1] in speaker.ends)
        if spoken.canonical == said:
            whole += 1
            assert agreeing(spoken, history) == len(spoken.tokens), spoken
        else:
            differing += 1
            same = agreeing(spoken, history)
            assert spoken.canonical in (same, speaker.whole_characters(spoken.tokens[:same])), (same, spoken)
    assert whole > 20 and differing > 1, (whole, differing)


def test_what_a_stop_string_took_away_does_not_come_back(speaker: Speaker) -> None:
    print(f"NINFER_TEST_SEED={SEED}")
    drawn = random.Random(SEED)
    compared = 0
    for (case, step), temperature in product(STEPS, TEMPERATURES[:3]):
        seed = drawn.getrandbits(32)
        text = speaker.spoken_again(case, step["messages"], random.Random(seed), temperature)[0].text
        at = drawn.randrange(max(len(text), 1))
        stop = (text[at : at + drawn.randint(1, 6)],) if text else ()
        spoken, history = speaker.spoken_again(case, step["messages"], random.Random(seed), temperature, stop)
        if speaker.is_verbatim(spoken, history):
            compared += 1
            assert spoken.canonical in (agreeing(spoken, history), 0), (stop, spoken)
    assert compared > 5
