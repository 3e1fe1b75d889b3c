"""Which sources a prompt may start from: the deepest checkpoint per continuation and kind, compared by digests only."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from heapq import nsmallest

from ninfer.resources.agreement_order import by_agreement
from ninfer.resources.catalog import Catalog, Place
from ninfer.resources.catalog_entry import CatalogEntry
from ninfer.resources.private_catalog import Cell, CellState
from ninfer.resources.program_view import PromptIdentity
from ninfer.resources.reuse_key import ReuseKey
from ninfer.resources.session_index import session_name
from ninfer.resources.shared_catalog import SharedPrefix
from ninfer.resources.source_choice import SourceSituation, wanted_uses
from ninfer.resources.source_offer import SourceOffer

MOST_OFFERS = 15
"""Beside root: at most 16 candidates are assessed (D-5)."""


@dataclass(frozen=True)
class _Source:
    """tokens: what it saves at least. whole: the prompt begins with all tokens of the checkpoint."""

    entry: CatalogEntry
    place: Place
    tokens: int
    whole: bool = True


class Shortlist:
    """One prompt against one catalog."""

    def __init__(
        self, catalog: Catalog, prompt: PromptIdentity, key: ReuseKey, markers: Collection[int], *, only_place: bool
    ) -> None:
        self._only_place = only_place
        self._catalog = catalog
        self._prompt = prompt
        self._key = key
        self._markers = markers
        self._name = session_name(key)
        self._readers = catalog.edges.counts()

    def offers(self) -> list[SourceOffer]:
        """The deepest first; of one depth the request's own session, then the last used."""
        rows = self._catalog.index.matching(self._prompt, self._prompt.size - 1)
        matched = [self._source(self._catalog.entry_of_row[row]) for row in rows]
        extends = frozenset(one.place.owner for one in matched if isinstance(one.place, SharedPrefix))
        sources = [one for one in matched if not isinstance(one.place, Cell) or one.place.serves]
        if not self._catalog.has_state:
            sources.extend(self._cut_short())
        offers: list[SourceOffer] = []
        for source in nsmallest(MOST_OFFERS, _deepest_of_each(sources), key=self._rank):
            offers.extend(self._offers_of(source, extends))
        return offers[:MOST_OFFERS]

    def _source(self, entry: CatalogEntry) -> _Source:
        return _Source(entry, self._catalog.place_of[entry.checkpoint], entry.frontier)

    def _cut_short(self) -> list[_Source]:
        """Without recurrent layers the deepest checkpoint of any owner serves any prefix of it (D-9).

        Every source is offered at least once, so those that rank behind the first 15 need not be made: with one common
        system prompt every continuation is a source.
        """
        agreement = self._catalog.marks.agreement(self._prompt)
        found: list[_Source] = []
        for place, tokens in by_agreement(self._catalog, agreement, self._catalog.sessions.cell_of(self._name)):
            standing = [place.entry] if isinstance(place, SharedPrefix) else place.standing if place.serves else []
            if standing:
                found.append(_Source(standing[-1], place, min(tokens, standing[-1].frontier), whole=False))
                if len(found) == MOST_OFFERS:
                    break
        return found

    def _rank(self, source: _Source) -> tuple[int, bool, int]:
        place = source.place
        foreign = isinstance(place, SharedPrefix) or not self._is_own_session(place)
        return (-source.tokens, foreign, -place.used_at)

    def _is_own_session(self, cell: Cell) -> bool:
        return self._name is not None and self._catalog.sessions.name_of(cell.number) == self._name

    def _offers_of(self, source: _Source, extends: frozenset[int]) -> Iterable[SourceOffer]:
        entry, place = source.entry, source.place
        private = place.number if isinstance(place, Cell) else None
        shared = place.number if isinstance(place, SharedPrefix) else None
        for use in wanted_uses(self._situation(source)):
            yield SourceOffer(entry.checkpoint, use, entry.kind, entry.frontier, place.owner, private, shared, extends)

    def _situation(self, source: _Source) -> SourceSituation:
        entry, place = source.entry, source.place
        if not isinstance(place, Cell):
            return SourceSituation(entry.kind, idle=False, publishes=self._key.publishes)
        name = self._catalog.sessions.name_of(place.number)
        return SourceSituation(
            kind=entry.kind,
            idle=place.state is CellState.IDLE and place.owner not in self._readers and bool(place.free_rows()),
            publishes=self._key.publishes,
            foreign=name is not None and name != self._name,
            marked=entry.frontier in self._markers,
            cell_free=self._catalog.cells.free_count > 0,
            only_place=self._only_place,
            whole=source.whole,
            last=entry is place.standing[-1],
            keeps_endpoint=self._catalog.keeps_endpoint(place, entry),
        )


def _deepest_of_each(sources: Iterable[_Source]) -> list[_Source]:
    """Per continuation and kind. One that is cut short hides what is shallower in its continuation."""
    best: dict[tuple[int, str], _Source] = {}
    cut = {one.place.owner: one.tokens for one in sources if not one.whole}
    for one in sources:
        if one.entry.doomed or (one.whole and one.tokens < cut.get(one.place.owner, 0)):
            continue
        known = best.get(key := (one.place.owner, one.entry.kind))
        if known is None or one.tokens > known.tokens or (one.tokens == known.tokens and one.whole):
            best[key] = one
    return list(best.values())
