"""A text together with a way of cutting it into pieces."""

from __future__ import annotations

from hypothesis import strategies as st


@st.composite
def chunked(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> list[str]:
    """The pieces of a text; their concatenation is the text, and pieces may be empty."""
    text = draw(texts)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=len(text) + 1)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
