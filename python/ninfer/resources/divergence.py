"""Why a prompt was not reused further: compares it with what is kept, at most 16 continuations, and with what was."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nlargest
from itertools import islice

from ninfer.native import must
from ninfer.resources.agreement_order import by_agreement
from ninfer.resources.capture_policy import Boundaries
from ninfer.resources.catalog import Catalog
from ninfer.resources.private_catalog import Cell
from ninfer.resources.program_view import PromptIdentity
from ninfer.resources.reuse_key import ReuseKey
from ninfer.resources.reuse_report import Divergence, ReuseReason, Shortfall
from ninfer.resources.session_index import session_name

MOST_COMPARED = 16


@dataclass(frozen=True)
class AdmittedPrompt:
    """reused: tokens that were not computed. refused: the deepest frontier of a source that did not fit, or 0."""

    prompt: PromptIdentity
    key: ReuseKey
    boundaries: Boundaries
    reused: int
    refused: int = 0


@dataclass(frozen=True)
class _Nearest:
    """The continuation that shares most: how much, how long it is, and whether it is the request's own session."""

    shared: int = 0
    length: int = 0
    own_session: bool = False


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
    if shared <= admitted.reused:
        return Shortfall(reason=_reason_without_match(catalog, admitted, lost))
    return Shortfall(shared, _divergence(admitted, nearest), _reason(admitted, nearest, lost))


def _reason_without_match(catalog: Catalog, admitted: AdmittedPrompt, lost: int) -> ReuseReason | None:
    if lost > admitted.reused:
        return ReuseReason.EVICTED
    if admitted.reused > 0:
        return None
    kept_for = {cell.salt for cell in catalog.cells if cell.entries} | {prefix.salt for prefix in catalog.shared}
    return ReuseReason.SALT if kept_for and admitted.key.salt not in kept_for | {""} else ReuseReason.NO_MATCH


def _reason(admitted: AdmittedPrompt, nearest: _Nearest, lost: int) -> ReuseReason:
    if admitted.refused > admitted.reused:
        return ReuseReason.PRESSURE_REFUSED
    if lost > admitted.reused:
        return ReuseReason.EVICTED
    inside = nearest.shared < min(nearest.length, admitted.prompt.size - 1)
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
    cells = _compared_cells(catalog, admitted)
    if not cells:
        return _Nearest()
    deepest = [cell.entries[-1] for cell in cells]
    shared = must(catalog.view.verify(admitted.prompt, [entry.checkpoint for entry in deepest]))
    name = session_name(admitted.key)
    found = [
        _Nearest(tokens, entry.frontier, name is not None and catalog.sessions.name_of(cell.number) == name)
        for tokens, entry, cell in zip(shared, deepest, cells, strict=True)
    ]
    return max(found, key=lambda one: (one.shared, one.own_session))


def _compared_cells(catalog: Catalog, admitted: AdmittedPrompt) -> list[Cell]:
    """The session's own, then those that agree furthest with the prompt at the marks, of these the last used.

    What agrees at no mark may still share less than the first one needs: the last used fill up the rest.
    """
    own = catalog.sessions.cell_of(session_name(admitted.key))
    cells = [] if own is None else [catalog.cells[own]]
    agreeing = by_agreement(catalog, catalog.marks.agreement(admitted.prompt), own)
    cells.extend(islice((cell for cell in agreeing if cell.entries and cell.number != own), MOST_COMPARED))
    cells = [cell for cell in cells if cell.entries]
    if len(cells) < MOST_COMPARED:
        taken = {cell.number for cell in cells}
        others = (cell for cell in catalog.cells if cell.entries and cell.number not in taken)
        cells += nlargest(MOST_COMPARED - len(cells), others, key=lambda cell: cell.used_at)
    return cells[:MOST_COMPARED]
