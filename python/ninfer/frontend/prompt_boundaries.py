"""Where in a prompt's tokens something begins that another prompt may share, or that a client may rewrite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class MessageBoundary:
    """Message `message` begins at token `frontier`."""

    frontier: int
    message: int


def _ascending(values: Sequence[int]) -> bool:
    return all(left < right for left, right in pairwise((0, *values)))


@dataclass(frozen=True)
class PromptBoundaries:
    """Exact token frontiers of one prompt: the ids before each are the ids of the text before it.

    messages: ascending; only messages of which the beginning is known and exact, and none that begins the prompt.
    tools_end: behind the description of all tools. leading_end: behind the system messages that come first.
    turn_closure: what is before it stays when the open turn is closed by a later user message, whatever the client then
    leaves out of the turn. turn_rewrite: where the first message of the open turn begins that the template itself shows
    otherwise then (without its reasoning); None without one. response_replay: before the opening of the answer; the
    same prompt can be answered again from there. markers: where the request itself said so. raw: token ids or plain
    text, which have no messages.
    """

    messages: tuple[MessageBoundary, ...] = ()
    tools_end: int | None = None
    leading_end: int | None = None
    turn_closure: int | None = None
    response_replay: int | None = None
    turn_rewrite: int | None = None
    markers: tuple[int, ...] = ()
    raw: bool = False

    def __post_init__(self) -> None:
        assert _ascending([boundary.frontier for boundary in self.messages]), self.messages
        assert _ascending([boundary.message + 1 for boundary in self.messages]), self.messages
        assert _ascending(self.markers), self.markers
        assert not (self.raw and self.frontiers), self

    @property
    def frontiers(self) -> list[int]:
        """Every frontier once, ascending."""
        single = (self.tools_end, self.leading_end, self.turn_closure, self.response_replay, self.turn_rewrite)
        found = {boundary.frontier for boundary in self.messages} | set(self.markers)
        return sorted(found.union(frontier for frontier in single if frontier is not None))

    def message_at(self, token: int) -> int | None:
        """The message that token `token` belongs to, as far as boundaries tell; None before the first of them."""
        begun = [boundary.message for boundary in self.messages if boundary.frontier <= token]
        return begun[-1] if begun else None


RAW_PROMPT = PromptBoundaries(raw=True)
