"""Turns a stream of token ids into text, without ever showing half a character."""

from __future__ import annotations

import codecs
from collections.abc import Set

from ninfer.frontend.tokenizer import Tokenizer


class Detokenizer:
    """The text of one answer as its tokens arrive.

    What `push` returned so far plus `flush` is always the one-shot decoding of all ids: bytes that can no longer become
    a character turn into U+FFFD, bytes that still can are held back.

    hidden_ids: tokens that are not shown. Markers such as `<think>` are control tokens in some vocabularies, so hiding
    all of `special_ids` would hide them from the parsers that need them.
    """

    def __init__(self, tokenizer: Tokenizer, hidden_ids: Set[int] = frozenset()) -> None:
        self._tokenizer = tokenizer
        self._hidden_ids = hidden_ids
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token_id: int) -> str:
        """The text that is certain now."""
        if token_id in self._hidden_ids:
            return ""
        return self._decoder.decode(self._tokenizer.token_bytes(token_id))

    def flush(self) -> str:
        """What was held back; the answer has ended."""
        return self._decoder.decode(b"", final=True)
