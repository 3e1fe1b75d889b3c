"""Random lives of a small catalog against the naive one: offers, claims, rollbacks, bindings, classes, evictions."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ninfer.resources.context_cache_options import ContextCacheOptions
from ninfer.resources.evidence import Evidence
from ninfer.resources.publication import CaptureRoom
from ninfer.resources.removal_reason import RemovalReason
from ninfer.resources.reuse_key import ReuseKey
from ninfer.resources.source_offer import SourceOffer
from tests.fixtures.fake_contexts import FakePrompt
from tests.python.resources.naive_catalog import NaiveCatalog
from tests.python.resources.played_engine import ANCHOR, CLOSURE, REPLAY, Played, PlayedEngine, aborted

KEYS = st.sampled_from(
    [
        ReuseKey(),
        ReuseKey(session="a"),
        ReuseKey(session="b"),
        ReuseKey(salt="x"),
        ReuseKey(salt="x", session="a"),
        ReuseKey(reads=False, publishes=False),
    ]
)
# Prompts come from a tree of few branches, so that they share much and differ everywhere.
PARTS = st.lists(st.sampled_from([(1,) * 20, (2,) * 20, (3,) * 30]), min_size=1, max_size=5)


class CatalogMachine(RuleBasedStateMachine):
    """Plays engine and program; the naive catalog says what must come out."""

    @initialize(cells=st.integers(1, 4), shared=st.integers(0, 3), anchors=st.integers(0, 3))
    def begin_catalog(self, cells: int, shared: int, anchors: int) -> None:
        options = ContextCacheOptions(
            max_private_continuations=cells, max_shared_prefixes=shared, max_long_anchors_per_continuation=anchors
        )
        self.engine = PlayedEngine(options)
        self.manager, self.contexts = self.engine.manager, self.engine.contexts
        self.naive = NaiveCatalog(self.contexts, cells)
        self.running: list[Played] = []
        self.added = 0

    # Requests

    @rule(parts=PARTS, key=KEYS, data=st.data())
    def admit(self, parts: list[tuple[int, ...]], key: ReuseKey, data: st.DataObject) -> None:
        prompt = FakePrompt(sum(parts, ()), key.salt)
        offers = self.manager.shortlist(prompt, key)
        self.check_offers(offers, prompt, key)
        offer = data.draw(st.sampled_from([None, *offers]))
        if not self.has_cell_for(offer, key) and not self.make_room(offers, offer, key):
            return
        if offer is not None and offer not in self.manager.shortlist(prompt, key):
            return  # the room that was made has changed what is wanted
        free = self.engine.manager.has_free_cell()
        victims = self.idle_owners(spared=offer)
        evict = data.draw(st.lists(st.sampled_from(victims), unique=True)) if victims else []
        request = self.engine.begin(prompt.tokens, key, offer, evict=evict)
        assert free or request.claim.cell is None or (offer is not None and offer.takes_owner)
        for owner in evict:
            self.naive.forget_owner(owner)
        self.naive.started(request.claim.request_id, request.claim.cell, offer)
        if request.claim.cell is not None:
            self.naive.owner_of_cell[request.claim.cell] = request.owner
        self.running.append(request)

    @rule(parts=PARTS, key=KEYS, data=st.data())
    def abort(self, parts: list[tuple[int, ...]], key: ReuseKey, data: st.DataObject) -> None:
        prompt = FakePrompt(sum(parts, ()), key.salt)
        offer = data.draw(st.sampled_from([None, *self.manager.shortlist(prompt, key)]))
        if not self.has_cell_for(offer, key):
            assert self.manager.claim(10**6, key, offer) is None
            return
        claim = self.manager.claim(10**6, key, offer)
        assert claim is not None
        lost = sorted(claim.deletes - ({offer.checkpoint} if offer else set()))
        if not lost or data.draw(st.booleans()):
            self.manager.abort_admission(claim, None)
            return
        self.contexts.delete(lost)
        self.manager.abort_admission(claim, aborted(lost))

    @precondition(lambda self: self.running)
    @rule(data=st.data(), kind=st.sampled_from([ANCHOR, CLOSURE, REPLAY]))
    def capture(self, data: st.DataObject, kind: Any) -> None:
        request = self.draw_running(data)
        base = request.offer.frontier if request.offer else 0
        room = self.manager.capture_room(request.claim, shared=False)
        if request.prompt.size - base < 2 or room is not CaptureRoom.FREE:
            return
        self.engine.capture(request, data.draw(st.integers(base + 1, request.prompt.size - 1)), kind)
        self.added += 1

    @precondition(lambda self: self.running)
    @rule(data=st.data(), evidence=st.sampled_from([Evidence.ENGINE_STRUCTURAL, Evidence.EXPLICIT_BOUNDARY]))
    def capture_shared(self, data: st.DataObject, evidence: Evidence) -> None:
        request = self.draw_running(data)
        frontier = data.draw(st.integers(1, request.prompt.size - 1))
        room = self.manager.capture_room(request.claim, shared=True)
        recycled = self.naive.recycled(request.claim.extends, request.claim.request_id)
        has_room = len(self.naive.shared) < self.manager.options.max_shared_prefixes
        wanted = CaptureRoom.FREE if has_room else CaptureRoom.NONE if recycled is None else CaptureRoom.RECYCLED
        assert room is wanted
        if room is CaptureRoom.RECYCLED:
            assert recycled == self.manager.shared_victims(request.claim)[0]
            self.naive.forget_owner(recycled)
        handle = self.engine.capture_shared(request, frontier, evidence)
        if handle is not None:
            self.added += 1
            owner = self.contexts.checkpoint(handle).owner
            self.naive.published(owner, request.claim.request_id, declared=evidence.is_declared)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), output=st.integers(0, 3))
    def finish(self, data: st.DataObject, output: int) -> None:
        request = self.draw_running(data)
        if request.claim.cell is None:
            return
        self.running.remove(request)
        self.engine.finish(request, output=[7] * output)
        self.added += 1
        claim = request.claim
        self.naive.finished(claim.request_id, claim.cell_number, claim.key, request.offer)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def break_off(self, data: st.DataObject) -> None:
        request = self.draw_running(data)
        deepest = max(
            (one.frontier for one in self.contexts.checkpoints.values() if one.owner == request.owner), default=0
        )
        base = max(deepest, request.offer.frontier if request.offer else 0)
        if request.claim.cell is None or request.prompt.size <= base:
            return
        self.running.remove(request)
        self.engine.break_off(request, data.draw(st.integers(base + 1, request.prompt.size)))
        self.added += 1
        self.naive.broken_off(request.claim.request_id, request.claim.cell_number)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def discard(self, data: st.DataObject) -> None:
        request = self.draw_running(data)
        self.running.remove(request)
        self.naive.sources.pop(request.claim.request_id, None)
        if request.claim.cell is not None:
            self.naive.forget_owner(request.owner)
        self.engine.discard(request)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def discard_at_once(self, data: st.DataObject) -> None:
        """It has computed nothing: what it took over comes back, a consumed source under another handle."""
        request = self.draw_running(data)
        claim = request.claim
        base = request.offer.frontier if request.offer else 0
        own = [one for one in self.contexts.checkpoints.values() if one.owner == request.owner]
        if any(one.frontier > base for one in own):
            return
        self.running.remove(request)
        self.naive.sources.pop(claim.request_id, None)
        if claim.takes_owner:
            self.added += claim.source_goes
        elif claim.cell is not None:
            self.naive.forget_owner(request.owner)
        self.engine.discard_at_once(request)

    # The world

    @rule()
    def delete_what_is_doomed(self) -> None:
        self.engine.delete_doomed()

    @rule(data=st.data())
    def lose_a_checkpoint(self, data: st.DataObject) -> None:
        """A copy failed."""
        owners = self.idle_owners(spared=None)
        if not owners:
            return
        owner = data.draw(st.sampled_from(owners))
        lost = data.draw(st.sampled_from(self.contexts.owners[owner].checkpoints))
        last = len(self.contexts.owners[owner].checkpoints) == 1
        self.contexts.delete([lost])
        if last:
            self.contexts.close(owner)
            self.naive.forget_owner(owner)
        self.manager.note_removed([lost], RemovalReason.COPY_FAILED)

    # What must hold

    @invariant()
    def everything_adds_up(self) -> None:
        if not hasattr(self, "manager"):
            return
        self.manager.check_invariants()
        self.naive.doomed = set(self.manager.doomed())
        assert set(self.manager.protected_owners()) == self.naive.protected()
        shown = {one.cell: (one.retention, one.session) for one in self.manager.slots()}
        assert shown == {
            cell: (one.retention, one.session and one.session[1]) for cell, one in self.naive.continuations.items()
        }
        found = self.manager.statistics()
        assert found.edges == len(self.naive.sources)
        assert found.checkpoints + sum(found.removed.values()) == self.added, "every removal has its reason"
        anchors = self.manager.options.max_long_anchors_per_continuation
        for one in self.manager.slots():
            assert one.kinds.count(ANCHOR) <= max(anchors, 1), one
            assert all(one.kinds.count(kind) <= 1 for kind in one.kinds if kind is not ANCHOR), one

    def check_offers(self, offers: list[SourceOffer], prompt: FakePrompt, key: ReuseKey) -> None:
        matching = self.naive.matching(prompt) if key.reads else {}
        deepest: dict[int, int] = {}
        for offer in offers:
            found = self.contexts.checkpoint(offer.checkpoint)
            assert prompt.tokens[: offer.frontier] == found.tokens and found.salt == prompt.salt
            assert offer.checkpoint not in self.naive.doomed
            assert not offer.takes_owner or self.naive.may_be_taken(offer, key), offer
            deepest[offer.owner] = max(deepest.get(offer.owner, 0), offer.frontier)
        assert deepest == matching
        frontiers = [offer.frontier for offer in offers]
        assert frontiers == sorted(frontiers, reverse=True)

    def has_cell_for(self, offer: SourceOffer | None, key: ReuseKey) -> bool:
        takes_its_own = offer is not None and offer.takes_owner
        assert self.manager.has_free_cell() == (len(self.naive.continuations) < self.naive.cells)
        return not key.publishes or takes_its_own or self.manager.has_free_cell()

    def make_room(self, offers: list[SourceOffer], offer: SourceOffer | None, key: ReuseKey) -> bool:
        assert self.manager.claim(10**6, key, offer) is None
        victim = next(iter(self.manager.cell_victims(offers)), None)
        assert victim == self.naive.victim(offers)
        if victim is None:
            return False
        self.naive.forget_owner(victim)
        self.engine.release(victim, RemovalReason.CATALOG_FULL)
        return True

    def idle_owners(self, spared: SourceOffer | None) -> list[int]:
        out = self.naive.protected() | ({spared.owner} if spared else set())
        owners = [self.naive.owner_of_cell[cell] for cell in self.naive.idle_cells()] + list(self.naive.shared)
        return [owner for owner in owners if owner not in out]

    def draw_running(self, data: st.DataObject) -> Played:
        return data.draw(st.sampled_from(self.running))


TestCatalogMachine = CatalogMachine.TestCase
TestCatalogMachine.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
