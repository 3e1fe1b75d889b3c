"""Why a prompt was not reused further: compares it with what is kept, at most 16 ledgers, and with what was."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nlargest
from itertools import islice

from ninfer.native import must
from ninfer.resources.agreement_order import by_agreement
from ninfer.resources.capture_policy import Boundaries
from ninfer.resources.catalog import Catalog, Place, deepest
from ninfer.resources.private_catalog import Cell
from ninfer.resources.program_view import PromptIdentity
from ninfer.resources.reuse_key import ReuseKey
from ninfer.resources.reuse_report import Divergence, ReuseReason, Shortfall
from ninfer.resources.session_index import session_name

MOST_COMPARED = 16


@dataclass(frozen=True)
class AdmittedPrompt:
    """reused: tokens that were not computed. refused: the deepest frontier of a source that did not fit, or 0.
    unsalted: of a request with a salt, the same prompt without."""

    prompt: PromptIdentity
    key: ReuseKey
    boundaries: Boundaries
    reused: int
    refused: int = 0
    unsalted: PromptIdentity | None = None


@dataclass(frozen=True)
class _Nearest:
    """What shares most: how much, how long it is, and whether it is the request's own session."""

    shared: int = 0
    length: int = 0
    own_session: bool = False
    respelled: bool = False
    """The two part inside an answer whose text has other tokens as history."""


def explain_shortfall(catalog: Catalog, admitted: AdmittedPrompt) -> Shortfall:
    """Nothing to explain: no reason. At least one token is always computed."""
    if not admitted.key.reads:
        return Shortfall(reason=ReuseReason.DISABLED)
    longest = admitted.prompt.size - 1
    if admitted.reused >= longest:
        return Shortfall()
    nearest = _nearest(catalog, admitted)
    lost = catalog.tombstones.deepest(admitted.prompt, longest)
    shared = min(max(nearest.shared, admitted.refused), longest)
    without_salt = 0 if admitted.unsalted is None else _usable(catalog, admitted.unsalted, longest)
    apart = without_salt > max(shared, admitted.reused, lost)
    if shared <= admitted.reused:
        return Shortfall(reason=_reason_without_match(admitted, lost, apart))
    return Shortfall(shared, _divergence(admitted, nearest), _reason(admitted, nearest, lost, apart))


def _usable(catalog: Catalog, prompt: PromptIdentity, longest: int) -> int:
    """How many tokens a request with this prompt could start from. Only asked of what is kept without a salt: whether
    somebody has asked the same under another one is not told to anybody."""
    rows = catalog.index.matching(prompt, longest)
    whole = catalog.entry_of_row[rows[0]].frontier if rows else 0
    if catalog.has_state:
        return whole
    return max(whole, min(int(catalog.marks.agreement(prompt).max()), longest))


def _reason_without_match(admitted: AdmittedPrompt, lost: int, apart: bool) -> ReuseReason | None:
    if lost > admitted.reused:
        return ReuseReason.EVICTED
    if apart:
        return ReuseReason.SALT
    return None if admitted.reused > 0 else ReuseReason.NO_MATCH


def _reason(admitted: AdmittedPrompt, nearest: _Nearest, lost: int, apart: bool) -> ReuseReason:
    if admitted.refused > admitted.reused:
        return ReuseReason.PRESSURE_REFUSED
    if lost > admitted.reused:
        return ReuseReason.EVICTED
    if apart:
        return ReuseReason.SALT
    inside = nearest.shared < min(nearest.length, admitted.prompt.size - 1) and not nearest.respelled
    if inside and (nearest.own_session or _shares_a_message(admitted.boundaries, nearest.shared)):
        return ReuseReason.REWRITTEN_HISTORY
    return ReuseReason.NO_CHECKPOINT


def _shares_a_message(boundaries: Boundaries, shared: int) -> bool:
    """Whether more is equal than the leading instructions: a whole message of the conversation itself."""
    leading = boundaries.leading_end or 0
    return any(leading < start.frontier <= shared for start in boundaries.messages)


def _divergence(admitted: AdmittedPrompt, nearest: _Nearest) -> Divergence | None:
    """None where one of the two simply ends."""
    if nearest.shared >= min(nearest.length, admitted.prompt.size):
        return None
    if admitted.boundaries.raw:
        return Divergence(nearest.shared, None)
    # What stands before every known beginning is the first message's.
    return Divergence(nearest.shared, admitted.boundaries.message_at(nearest.shared) or 0)


def _nearest(catalog: Catalog, admitted: AdmittedPrompt) -> _Nearest:
    places = _compared(catalog, admitted)
    kept = [(place, entry) for place in places if (entry := deepest(place)) is not None]
    if not kept:
        return _Nearest()
    shared = must(catalog.view.verify(admitted.prompt, [entry.checkpoint for _, entry in kept]))
    name = session_name(admitted.key)
    own = None if name is None else catalog.sessions.cell_of(name)
    found = [
        _Nearest(tokens, entry.frontier, isinstance(place, Cell) and place.number == own, entry.is_respelled_at(tokens))
        for tokens, (place, entry) in zip(shared, kept, strict=True)
    ]
    return max(found, key=lambda one: (one.shared, one.own_session))


def _compared(catalog: Catalog, admitted: AdmittedPrompt) -> list[Place]:
    """The session's own, then what agrees furthest with the prompt at the marks, of that the last used.

    What agrees at no mark may still share less than the first one needs: the last used fill up the rest.
    """
    own = catalog.sessions.cell_of(session_name(admitted.key))
    own_cell = None if own is None else catalog.cells[own]
    agreeing = by_agreement(catalog, catalog.marks.agreement(admitted.prompt), own)
    places: list[Place] = [] if own_cell is None else [own_cell]
    places.extend(islice((place for place, _ in agreeing if place is not own_cell), MOST_COMPARED))
    if len(places) < MOST_COMPARED:
        taken = {catalog.marks_row(place) for place in places}
        everything: list[Place] = [*catalog.cells, *catalog.shared]
        others = (place for place in everything if deepest(place) and catalog.marks_row(place) not in taken)
        places += nlargest(MOST_COMPARED - len(places), others, key=lambda place: place.used_at)
    return places[:MOST_COMPARED]
