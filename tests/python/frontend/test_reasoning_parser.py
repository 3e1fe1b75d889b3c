"""Reasoning and content are told apart, whatever the cuts."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ninfer.frontend.reasoning_parser import ReasoningDelta, ReasoningParser, prompt_opens_reasoning
from tests.python.frontend.chunks import chunked

PIECES = st.sampled_from(["<think>", "</think>", "<th", "</", "think>", "\n", " ", "a", "<", ">"])
TEXTS = st.lists(PIECES, max_size=10).map("".join)


def _parsed(chunks: list[str], opened: bool) -> ReasoningDelta:
    parser = ReasoningParser(opened=opened)
    return sum((parser.push(chunk) for chunk in chunks), ReasoningDelta()) + parser.flush()


def _naive(text: str, opened: bool) -> ReasoningDelta:
    """The same split on the whole text, by a pattern."""
    if not opened:
        match = re.match(r"\s*<think>", text)
        if match is None:
            return ReasoningDelta(content=text)
        text = text[match.end() :]
    reasoning, _, content = text.partition("</think>")
    return ReasoningDelta(reasoning.strip("\n"), content.lstrip("\n"))


@given(chunked(TEXTS), st.booleans())
@example(["\n", "<think>\na\n", "\n</thi", "nk>\n\nb\n"], False)
def test_equals_the_split_of_the_whole_text_for_every_chunking(chunks: list[str], opened: bool) -> None:
    assert _parsed(chunks, opened) == _naive("".join(chunks), opened)


@pytest.mark.parametrize(
    ("text", "opened", "reasoning", "content"),
    [
        ("a fact.\n</think>\n\nnoted.", True, "a fact.", "noted."),
        ("<think>\nhm \n</think>\n\n hi\n", False, "hm ", " hi\n"),
        ("<think>\n\n</think>\n\nhi", False, "", "hi"),
        ("never closed\n", True, "never closed", ""),
        ("plain <think>x</think>", False, "", "plain <think>x</think>"),
        (" \n plain", False, "", " \n plain"),
        ("a</think>b</think>c", True, "a", "b</think>c"),
        ("", True, "", ""),
    ],
)
def test_examples(text: str, opened: bool, reasoning: str, content: str) -> None:
    assert _parsed([text], opened) == _parsed(list(text), opened) == ReasoningDelta(reasoning, content)


def test_certain_text_is_shown_at_once() -> None:
    parser = ReasoningParser(opened=False)
    shown = [parser.push(text) for text in ("<think>", "\n", "one", "\n</", "b>", "\n", "</think>", "\n", "x<thi")]
    reasoning = [delta.reasoning for delta in shown]
    assert reasoning == ["", "", "one", "", "\n</b>", "", "", "", ""]
    assert [delta.content for delta in shown] == ["", "", "", "", "", "", "", "", "x<thi"]


@pytest.mark.parametrize(
    ("prompt", "opens"),
    [("<|im_start|>assistant\n<think>\n", True), ("assistant\n<think>\n\n</think>\n\n", False), ("assistant\n", False)],
)
def test_prompts_that_open_reasoning(prompt: str, opens: bool) -> None:
    assert prompt_opens_reasoning(prompt) == opens
