"""Where a text can be cut in two that tokenise as they do together, because a token of its own stands there."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tokenizers import AddedToken


class ControlEdges:
    """For texts in which added tokens are recognised wherever they stand.

    A token that takes blanks or looks at letters beside it has no edge there; one that is recognised only after
    normalising has none where there is a normaliser.
    """

    def __init__(self, tokens: Sequence[AddedToken], *, normalises: bool) -> None:
        texts = {token.content for token in tokens if token.content}
        unsure = {token.content for token in tokens if token.single_word or (normalises and token.normalized)}
        self._texts = texts
        self._no_edge_before = unsure | {token.content for token in tokens if token.lstrip}
        self._no_edge_behind = unsure | {token.content for token in tokens if token.rstrip}
        self._firsts = frozenset(text[0] for text in texts)
        self._lengths = sorted({len(text) for text in texts})
        longest_first = sorted(texts, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")

    def spans(self, text: str, start: int, end: int) -> list[tuple[int, int]]:
        """The added tokens between two places that no token spans."""
        return [found.span() for found in self._pattern.finditer(text, start, end)]

    def splits(self, text: str, place: int) -> bool:
        """Whether `text` may be cut at `place`."""
        return (self._begins(text, place) or self._ends(text, place)) and not self._spanned(text, place)

    def _begins(self, text: str, place: int) -> bool:
        found = [
            text[place : place + length] for length in self._lengths if text[place : place + length] in self._texts
        ]
        return bool(found) and max(found, key=len) not in self._no_edge_before

    def _ends(self, text: str, place: int) -> bool:
        lengths = [length for length in self._lengths if length <= place]
        found = {text[place - length : place] for length in lengths} & self._texts
        return bool(found) and not found & self._no_edge_behind

    def _spanned(self, text: str, place: int) -> bool:
        """Whether something that looks like one of the tokens stands on both sides."""
        longest = self._lengths[-1]
        return any(
            text[start] in self._firsts
            and any(text[start : start + length] in self._texts for length in self._lengths if start + length > place)
            for start in range(max(0, place - longest + 1), place)
        )
