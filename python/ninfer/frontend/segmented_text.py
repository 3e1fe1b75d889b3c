"""A rendered prompt with the knowledge of which of its parts may hold control tokens; turns places into frontiers."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ninfer.frontend.tokenizer import Tokenizer

# Where every word splitter splits, whatever comes further left or right; and where it does if a line ends there.
_BETWEEN_WORDS = re.compile(r"(?<=[A-Za-z])(?= [A-Za-z])")
_SPLIT = re.compile(r"(?<=[A-Za-z])(?= [A-Za-z])|(?<=\n)(?=\S)")
_WINDOW = 2048


@dataclass(frozen=True)
class Segment:
    """Characters [start, end) of the text. token_id: the control token that they are; None for text, in which special
    tokens are recognised if `parse_special`."""

    start: int
    end: int
    parse_special: bool = False
    token_id: int | None = None


class SegmentedText:
    """segments cover the text without gaps; control tokens are only where they say."""

    def __init__(self, tokenizer: Tokenizer, text: str, segments: Sequence[Segment]) -> None:
        self.text = text
        self._tokenizer = tokenizer
        self._segments = segments
        self._starts = [segment.start for segment in segments]

    def controls(self, start: int, end: int) -> list[tuple[int, int]]:
        """The control tokens between two places, as (start, end)."""
        first = max(0, bisect_right(self._starts, start) - 1)
        found: list[tuple[int, int]] = []
        for segment in self._segments[first : bisect_left(self._starts, end)]:
            if segment.token_id is not None:
                found.append((segment.start, segment.end))
            elif segment.parse_special:
                inside = max(start, segment.start), min(end, segment.end)
                found += self._tokenizer.control_edges.spans(self.text, *inside)
        return [(left, right) for left, right in found if start <= left and right <= end]

    def is_edge(self, place: int) -> bool:
        """Whether a control token begins or ends here, so that the text is cut here whatever stands around."""
        segment = self._segments[max(0, bisect_right(self._starts, place) - 1)]
        if segment.start == place or not segment.parse_special:
            return segment.start == place
        return self._tokenizer.control_edges.splits(self.text, place)

    def splits_before(self, place: int, near: int) -> list[int]:
        """Up to `near` characters back, the places where the text is cut whatever follows `place`, the last first."""
        start = max(0, place - near)
        edges = [edge for span in self.controls(start, min(place + near, len(self.text))) for edge in span]
        found = [found.start() for found in _SPLIT.finditer(self.text, start, place) if found.start() + 2 <= place]
        return sorted({edge for edge in (*edges, *found) if 0 < edge <= place}, reverse=True)

    def encoded(self, places: Iterable[int]) -> tuple[list[int], dict[int, int]]:
        """The ids of the whole text, and for those places that are exact frontiers how many ids are before them."""
        wanted = sorted({place for place in places if 0 < place < len(self.text)})
        token_ids: list[int] = []
        frontiers: dict[int, int] = {}
        for segment in self._segments:
            if token_ids:
                frontiers[segment.start] = len(token_ids)
            if segment.token_id is not None:
                token_ids.append(segment.token_id)
                continue
            inner = wanted[bisect_right(wanted, segment.start) : bisect_left(wanted, segment.end)]
            edges = self._tokenizer.control_edges
            cuts = [place for place in inner if segment.parse_special and edges.splits(self.text, place)]
            for start, end in pairwise((segment.start, *cuts, segment.end)):
                if token_ids:
                    frontiers[start] = len(token_ids)
                rest = inner[bisect_right(inner, start) : bisect_left(inner, end)]
                piece = self.text[start:end]
                ids, found = self._piece(piece, segment.parse_special, [place - start for place in rest])
                frontiers |= {start + place: len(token_ids) + index for place, index in found.items()}
                token_ids += ids
        return token_ids, {place: frontiers[place] for place in wanted if place in frontiers}

    def _piece(self, text: str, parse_special: bool, places: Sequence[int]) -> tuple[list[int], dict[int, int]]:
        if not places:
            return self._tokenizer.encode(text, add_special=False, parse_special=parse_special), {}
        placed = self._tokenizer.encode_placed(text, parse_special=parse_special)
        found = {}
        for place in places:
            begin = _safe_beginning(text, place)
            if begin is None:
                continue
            first, index = placed.tokens_before(begin), placed.tokens_before(place)
            ids = placed.ids[first:index]
            if ids == self._tokenizer.encode(text[begin:place], add_special=False, parse_special=parse_special):
                found[place] = index
            elif _SPLIT.match(text, place) and placed.ends_at(index - 1, place):
                # The end of several lines is one token before the end of the text, and another before a word.
                further = self._tokenizer.encode(
                    text[begin : place + 1], add_special=False, parse_special=parse_special
                )
                if further[: len(ids)] == ids:
                    found[place] = index
        return placed.ids, found


def _safe_beginning(text: str, place: int) -> int | None:
    """A place before `place` from which on the text is tokenised as if it began there; None if none is near."""
    near = [found.start() for found in _BETWEEN_WORDS.finditer(text, max(0, place - _WINDOW), place)]
    earlier = [start for start in near if start < place - 1]
    if earlier:
        return earlier[len(earlier) // 2]
    return 0 if place <= _WINDOW else None
