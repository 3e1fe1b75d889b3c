"""What a history reproduces of an answer's tokens: compared with tokenising the whole text at once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer.frontend.canonical_output import CanonicalOutput
from ninfer.frontend.tokenizer import Tokenizer

PIECES = st.sampled_from(
    ["word", " word", " and more words", ". ", "\n", "\n\n", "  ", "今天天气很好。", "é", " 1234", "x = y;", "\t"]
)
TEXTS = st.lists(PIECES, max_size=150).map("".join)


def _count(tokenizer: Tokenizer, token_ids: Sequence[int]) -> int:
    output = CanonicalOutput(tokenizer)
    for token_id in token_ids:
        output.push(token_id)
    return output.count()


def _reproduced(tokenizer: Tokenizer, token_ids: Sequence[int]) -> int:
    text = tokenizer.decode(token_ids, skip_special=False)
    again = tokenizer.encode(text, add_special=False, parse_special=True)
    same = [left == right for left, right in zip(token_ids, again, strict=False)]
    return same.index(False) if False in same else len(same)


@pytest.mark.parametrize("vocabulary", ["demo_tokenizer", "smollm_tokenizer", "qwen_tokenizer"])
@given(text=TEXTS)
@settings(deadline=None, max_examples=60)
def test_tokens_of_the_tokenizer_are_all_reproduced(request: pytest.FixtureRequest, vocabulary: str, text: str) -> None:
    tokenizer: Tokenizer = request.getfixturevalue(vocabulary)
    token_ids = tokenizer.encode(text, add_special=False, parse_special=True)
    assert _count(tokenizer, token_ids) == len(token_ids)


@pytest.mark.parametrize("vocabulary", ["demo_tokenizer", "smollm_tokenizer"])
@given(text=TEXTS, data=st.data())
@settings(deadline=None, max_examples=100)
def test_other_tokens_of_the_same_text_are_reproduced_up_to_the_difference(
    request: pytest.FixtureRequest, vocabulary: str, text: str, data: st.DataObject
) -> None:
    """One token is exchanged for those of its bytes, as a model may do."""
    tokenizer: Tokenizer = request.getfixturevalue(vocabulary)
    token_ids = tokenizer.encode(text, add_special=False, parse_special=True)
    if not token_ids:
        return
    place = data.draw(st.integers(0, len(token_ids) - 1))
    spelled = [
        token
        for character in tokenizer.decode([token_ids[place]], skip_special=False)
        for token in tokenizer.encode(character, add_special=False, parse_special=True)
    ]
    other = [*token_ids[:place], *spelled, *token_ids[place + 1 :]]
    if tokenizer.decode(other, skip_special=False) != text:
        return
    assert _count(tokenizer, other) == _reproduced(tokenizer, other)


def test_what_follows_a_hidden_token_is_not_reproduced(demo_tokenizer: Tokenizer) -> None:
    ids = demo_tokenizer.encode("some words", add_special=False, parse_special=True)
    [eos, *_] = demo_tokenizer.eos_ids
    output = CanonicalOutput(demo_tokenizer, {eos})
    for token_id in [*ids, eos, *ids]:
        output.push(token_id)
    assert output.count() == len(ids)


def test_a_stop_string_takes_its_tokens_away(demo_tokenizer: Tokenizer) -> None:
    text = "the answer is 42 STOP"
    ids = demo_tokenizer.encode(text, add_special=False, parse_special=True)
    output = CanonicalOutput(demo_tokenizer)
    for token_id in ids:
        output.push(token_id)
    shown = text.removesuffix(" STOP")
    kept = demo_tokenizer.encode(shown, add_special=False, parse_special=True)
    assert output.count() == len(ids)
    assert ids[: len(kept)] == kept
    assert output.count(len(shown.encode())) == len(kept)


@given(text=TEXTS, before=st.sampled_from(["", "<|im_start|>assistant\n", "<think>\n", "</think>\n\n", "a b", " "]))
@settings(deadline=None, max_examples=100)
def test_a_history_may_join_the_beginning_with_the_end_of_the_prompt(
    demo_tokenizer: Tokenizer, before: str, text: str
) -> None:
    prompt, answer = (demo_tokenizer.encode(one, add_special=False, parse_special=True) for one in (before, text))
    history = demo_tokenizer.encode(before + text, add_special=False, parse_special=True)
    output = CanonicalOutput(demo_tokenizer, prompt=prompt)
    for token_id in answer:
        output.push(token_id)
    whole = [*prompt, *answer]
    same = next(
        (at for at, (a, b) in enumerate(zip(whole, history, strict=False)) if a != b), min(len(whole), len(history))
    )
    assert output.count() == max(same - len(prompt), 0)
