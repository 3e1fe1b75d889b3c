"""Ends an answer at the first stop string, wherever token borders lie."""

from __future__ import annotations

from collections.abc import Sequence

from ninfer.errors import RequestError


class StopMatcher:
    """Passes text through until a stop string is complete.

    The answer ends where a stop string is first completed; if several are completed by the same character, the longest
    counts. Neither it nor anything after it is shown. Text that may still become the beginning of a stop string is held
    back. The result does not depend on how the text was cut into pieces.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        if not all(stops):
            raise RequestError("stop", "a stop string must not be empty")
        self._beginnings = {stop[:length] for stop in stops for length in range(1, len(stop))}
        self._stops = tuple(stops)
        self._longest = max(map(len, stops), default=0)
        self._held = ""
        self.matched: str | None = None

    def push(self, text: str) -> str:
        """The text that may be shown now; nothing once `matched` is set."""
        if self.matched is not None:
            return ""
        pending = self._held + text
        ends = [(start + len(stop), -len(stop), stop) for stop in self._stops if (start := pending.find(stop)) >= 0]
        if ends:
            end, _, self.matched = min(ends)
            self._held = ""
            return pending[: end - len(self.matched)]
        held = next((n for n in range(min(self._longest - 1, len(pending)), 0, -1) if self._begins(pending[-n:])), 0)
        split = len(pending) - held
        self._held = pending[split:]
        return pending[:split]

    def flush(self) -> str:
        """What was held back; the answer has ended without a stop string."""
        held, self._held = self._held, ""
        return held

    def _begins(self, text: str) -> bool:
        return text in self._beginnings
