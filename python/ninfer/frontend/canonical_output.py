"""How many tokens of an answer come back when its text is tokenised again, as it is in the next turn's prompt."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

from ninfer.frontend.tokenizer import Tokenizer

# Where every word splitter splits, whatever stands further left or right: between two words, and behind the single end
# of a line, if neither side is white space (the bytes named last begin Chinese characters, and are its full stop).
_SPLIT = re.compile(rb"(?<=[A-Za-z])(?= [A-Za-z])|(?:(?<=[!-~]\n)|(?<=\xe3\x80\x82\n))(?=[!-~\xe4-\xe9])")
_STRETCH_BYTES = 96
# What follows this much text without such a place is not looked at any more.
_MOST_BYTES = 4096
# Of the prompt: enough of what the beginning of the answer may be one word with.
_MOST_BEFORE = 8


class CanonicalOutput:
    """Life: `push` of each token of the answer, without the one that ends it; `count` when it has ended.

    A model may spell a text in other tokens than the tokenizer does; from the first such place on, a prompt that holds
    the answer as history has other tokens. The answer is compared in stretches, as it comes, so that no push takes
    long. Control tokens count as such: a history has them if the client sends reasoning and calls back as those.

    hidden_ids: tokens that are no part of the answer's text; what follows one is not reproduced. prompt: the blank at
    the end of a prompt and the one that begins an answer may be one token in a history.
    """

    def __init__(self, tokenizer: Tokenizer, hidden_ids: Set[int] = frozenset(), prompt: Sequence[int] = ()) -> None:
        self._tokenizer = tokenizer
        self._hidden_ids = hidden_ids
        # Not settled yet: tokens, their bytes, and where in these each token ends.
        self._ids: list[int] = []
        self._text = b""
        self._ends: list[int] = []
        for token_id in self._reproduced_end(prompt):
            self._append(token_id)
        # Settled so far: bytes of the answer, and how many of its tokens are reproduced; less than none while the end
        # of the prompt is before it.
        self._bytes, self._agreeing = -len(self._text), -len(self._ids)
        self._enough_bytes = _STRETCH_BYTES
        self._differs = False

    def push(self, token_id: int) -> None:
        """Costs nothing once a difference was found."""
        if self._differs:
            return
        if token_id in self._hidden_ids:
            self._settle(len(self._ids), len(self._text))
            self._differs = True
            return
        self._append(token_id)
        if len(self._text) >= self._enough_bytes:
            self._settle_stretch()

    def count(self, shown_bytes: int | None = None) -> int:
        """How many of the tokens a history has again: all of them, or those before the first difference.

        shown_bytes: how much of the text is shown, if a stop string took the end of it away.
        """
        if shown_bytes is None or (self._differs and shown_bytes >= self._bytes):
            more = 0 if self._differs else self._reproduced(self._ids, self._text)
        elif shown_bytes >= self._bytes:
            more = self._reproduced(self._ids, self._text[: shown_bytes - self._bytes])
        else:
            # The stop string began in a stretch that was settled, and what was before it is not known any more.
            return 0
        return max(self._agreeing + more, 0)

    def _append(self, token_id: int) -> None:
        self._ids.append(token_id)
        self._text += self._tokenizer.token_bytes(token_id)
        self._ends.append(len(self._text))

    def _reproduced_end(self, prompt: Sequence[int]) -> Sequence[int]:
        """As much of it as is spelled like that, behind its last control token: nothing joins over one."""
        special = self._tokenizer.special_ids
        end = list(prompt[-_MOST_BEFORE:])
        begin = next((index + 1 for index in range(len(end) - 1, -1, -1) if end[index] in special), 0)
        text = [self._tokenizer.token_bytes(token_id) for token_id in end]
        tails = range(begin, len(end))
        return next((end[at:] for at in tails if self._reproduced(end[at:], b"".join(text[at:])) == len(end) - at), [])

    def _settle_stretch(self) -> None:
        """Settles what is before the last sure split that is between two tokens."""
        places = set() if self._tokenizer.added_text_has_blanks else {at.start() for at in _SPLIT.finditer(self._text)}
        index = next((index for index in range(len(self._ends) - 1, -1, -1) if self._ends[index] in places), None)
        self._enough_bytes = _STRETCH_BYTES if index is not None else 2 * len(self._text)
        if index is not None:
            self._settle(index + 1, self._ends[index])
        else:
            self._differs = len(self._text) > _MOST_BYTES

    def _settle(self, count: int, place: int) -> None:
        agreeing = self._reproduced(self._ids[:count], self._text[:place])
        self._agreeing += agreeing
        self._bytes += place
        self._differs = agreeing < count
        self._ids, self._text = self._ids[count:], self._text[place:]
        self._ends = [end - place for end in self._ends[count:]]

    def _reproduced(self, token_ids: Sequence[int], text: bytes) -> int:
        try:
            shown = text.decode()
        except UnicodeDecodeError as error:
            shown = text[: error.start].decode()
        again = self._tokenizer.encode(shown, add_special=False, parse_special=True)
        pairs = enumerate(zip(token_ids, again, strict=False))
        return next((index for index, (left, right) in pairs if left != right), min(len(token_ids), len(again)))
