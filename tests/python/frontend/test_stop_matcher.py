"""Stop strings are found across every cut, against a search that sees the whole text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer.errors import RequestError
from ninfer.frontend.stop_matcher import StopMatcher
from tests.python.frontend.chunks import chunked

TEXTS = st.text("ab<|", max_size=24)
STOPS = st.lists(st.text("ab<|", min_size=1, max_size=4), max_size=4)


def _naive(text: str, stops: list[str]) -> tuple[str, str | None]:
    """Reads character by character and looks whether a stop string just ended."""
    for end in range(1, len(text) + 1):
        ended = [stop for stop in stops if text[:end].endswith(stop)]
        if ended:
            longest = max(ended, key=len)
            return text[: end - len(longest)], longest
    return text, None


@given(chunked(TEXTS), STOPS)
def test_equals_the_naive_search_for_every_chunking(chunks: list[str], stops: list[str]) -> None:
    matcher = StopMatcher(stops)
    shown = "".join(matcher.push(chunk) for chunk in chunks)
    assert (shown + matcher.flush(), matcher.matched) == _naive("".join(chunks), stops)


@given(chunked(TEXTS), STOPS)
def test_holds_back_only_what_may_begin_a_stop_string(chunks: list[str], stops: list[str]) -> None:
    matcher = StopMatcher(stops)
    shown = "".join(matcher.push(chunk) for chunk in chunks)
    if matcher.matched is None:
        held = "".join(chunks)[len(shown) :]
        assert held == "" or any(stop.startswith(held) for stop in stops)


def test_example() -> None:
    matcher = StopMatcher(["\nUser:", "END"])
    assert [matcher.push(text) for text in ("Hi\n", "Us", "e me\nUse", "r", ": next")] == ["Hi", "", "\nUse me", "", ""]
    assert matcher.matched == "\nUser:"
    assert matcher.push("more") == ""


def test_an_empty_stop_string_is_refused() -> None:
    with pytest.raises(RequestError, match="stop"):
        StopMatcher(["a", ""])
