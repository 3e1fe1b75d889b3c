"""Token ids that know where in the text they stand."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

import tokenizers


class PlacedIds:
    """The places are asked for one by one: a list of all would keep other threads waiting while it is made."""

    def __init__(self, encoding: tokenizers.Encoding) -> None:
        self._encoding = encoding

    @cached_property
    def ids(self) -> list[int]:
        """All ids."""
        return list(self._encoding.ids)

    def span(self, index: int) -> tuple[int, int]:
        """First character and end of one token."""
        span = self._encoding.token_to_chars(index)
        assert span is not None, f"token {index} of the text stands nowhere in it"
        start, end = span
        return start, end

    def ends_at(self, index: int, place: int) -> bool:
        """Whether the token at `index` is the last before `place` and nothing of the next stands before it."""
        return index >= 0 and self.span(index)[1] == place

    def tokens_before(self, place: int) -> int:
        """How many tokens end at `place` or before it."""
        return bisect_right(range(len(self.ids)), place, key=lambda index: self.span(index)[1])
