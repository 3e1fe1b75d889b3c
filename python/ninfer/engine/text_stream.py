"""Tokens in, text out."""

from __future__ import annotations

from ninfer.frontend.detokenizer import Detokenizer
from ninfer.frontend.stop_matcher import StopMatcher
from ninfer.frontend.tokenizer import Tokenizer


class TextStream:
    """The text of one answer: whole characters only, and nothing that may turn out to begin a stop string.

    Beginning, end and padding tokens are not shown; other control tokens are, since formats are made of them.
    """

    def __init__(self, tokenizer: Tokenizer, stops: tuple[str, ...]) -> None:
        control = {token for token in (tokenizer.bos_id, tokenizer.pad_id) if token is not None}
        self.hidden_ids = control | tokenizer.eos_ids
        self._detokenizer = Detokenizer(tokenizer, hidden_ids=self.hidden_ids)
        self._stops = StopMatcher(stops)

    @property
    def stopped(self) -> bool:
        """Whether a stop string is complete; nothing more is shown then."""
        return self._stops.matched is not None

    @property
    def stop_string(self) -> str | None:
        """The stop string that is complete."""
        return self._stops.matched

    def push(self, token_id: int) -> str:
        """The text that is certain now."""
        return self._stops.push(self._detokenizer.push(token_id))

    def finish(self) -> str:
        """What was held back; the answer has ended."""
        piece = self._stops.push(self._detokenizer.flush())
        return piece if self.stopped else piece + self._stops.flush()
