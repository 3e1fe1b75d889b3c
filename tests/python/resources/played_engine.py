"""Plays the engine for the catalog's tests: the same calls in the same order, on contexts without a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ninfer.resources.checkpoint_kind import CheckpointKind
from ninfer.resources.claim import Claim
from ninfer.resources.context_cache_options import ContextCacheOptions
from ninfer.resources.evidence import Evidence
from ninfer.resources.publication import CaptureRoom
from ninfer.resources.removal_reason import RemovalReason
from ninfer.resources.resource_manager import ResourceManager
from ninfer.resources.reuse_key import ReuseKey
from ninfer.resources.source_offer import SourceOffer
from tests.fixtures.fake_contexts import FakeContexts, FakePrompt, FakeResult, Tokens

ENDPOINT, ANCHOR = CheckpointKind.SESSION_ENDPOINT, CheckpointKind.LONG_ANCHOR
CLOSURE, REPLAY = CheckpointKind.TURN_CLOSURE, CheckpointKind.RESPONSE_REPLAY


@dataclass
class Played:
    """A running request."""

    claim: Claim
    owner: int
    prompt: FakePrompt
    offer: SourceOffer | None


@dataclass
class PlayedEngine:
    """One request after another, or several side by side."""

    options: ContextCacheOptions = field(default_factory=ContextCacheOptions)
    has_state: bool = True

    def __post_init__(self) -> None:
        self.contexts = FakeContexts()
        self.manager = ResourceManager(self.options, self.contexts, has_state=self.has_state)
        self.ids = 0

    def begin(
        self,
        tokens: Sequence[int],
        key: ReuseKey | None = None,
        offer: SourceOffer | None = None,
        start: int | None = None,
        evict: Sequence[int] = (),
    ) -> Played:
        """From this offer, or from root; evict: inactive owners that its plan gives up."""
        key = key or ReuseKey()
        self.ids += 1
        claim = self.manager.claim(self.ids, key, offer, start)
        assert claim is not None
        evicted = self.contexts.evict(evict)
        source = (offer.checkpoint, claim.offer.use, start) if offer and claim.offer else ()
        result, owner = self.contexts.start(*source)
        result.removed += evicted.removed
        result.owners_gone += evicted.owners_gone
        self.manager.adopt_admission(claim, result, owner)
        return Played(claim, owner, FakePrompt(tuple(tokens), key.salt), offer)

    def begin_best(self, tokens: Sequence[int], key: ReuseKey | None = None) -> Played:
        """From the first offer."""
        key = key or ReuseKey()
        offers = self.manager.shortlist(FakePrompt(tuple(tokens), key.salt), key)
        return self.begin(tokens, key, offers[0] if offers else None)

    def capture(self, request: Played, frontier: int, kind: CheckpointKind = ANCHOR) -> int:
        assert self.manager.capture_room(request.claim, shared=False) is CaptureRoom.FREE
        handle = self.contexts.capture(request.owner, request.prompt.tokens[:frontier], request.prompt.salt, kind)
        self.manager.adopt_capture(request.claim, handle, kind)
        return handle

    def capture_shared(
        self, request: Played, frontier: int, evidence: Evidence = Evidence.ENGINE_STRUCTURAL
    ) -> int | None:
        """None if there is no room."""
        room = self.manager.capture_room(request.claim, shared=True)
        if room is CaptureRoom.NONE:
            return None
        if room is CaptureRoom.RECYCLED:
            self.release(self.manager.shared_victims(request.claim)[0], RemovalReason.SHARED_FULL)
        handle = self.contexts.capture_shared(request.prompt.tokens[:frontier], request.prompt.salt)
        self.manager.adopt_shared_capture(request.claim, handle, evidence)
        return handle

    def finish(self, request: Played, output: Sequence[int] = (), kind: CheckpointKind = ENDPOINT) -> int:
        """The endpoint."""
        tokens: Tokens = (*request.prompt.tokens, *output)
        handle = self.contexts.finish(request.owner, tokens, request.prompt.salt, kind)
        self.manager.adopt_finish(request.claim, request.owner, kind)
        self.delete_doomed()
        self.manager.check_invariants()
        return handle

    def break_off(self, request: Played, computed: int) -> int:
        handle = self.contexts.finish(request.owner, request.prompt.tokens[:computed], request.prompt.salt, ANCHOR)
        self.manager.adopt_finish(request.claim, request.owner, ANCHOR)
        self.delete_doomed()
        self.manager.check_invariants()
        return handle

    def finish_owner(self, request: Played) -> int:
        self.finish(request)
        return request.owner

    def shared_frontiers(self) -> list[int]:
        owners = self.contexts.owners.values()
        listed = [one for owner in owners if owner.role == "shared" for one in owner.checkpoints]
        return [self.contexts.checkpoints[one].frontier for one in listed]

    def discard(self, request: Played) -> None:
        self.contexts.close(request.owner)
        self.manager.discard(request.claim)
        self.manager.check_invariants()

    def discard_at_once(self, request: Played) -> None:
        """Before it has computed a token of its own."""
        if request.claim.takes_owner:
            self.contexts.give_back(request.owner)
        else:
            self.contexts.close(request.owner)
        self.manager.discard(request.claim)
        self.delete_doomed()
        self.manager.check_invariants()

    def release(self, owner: int, reason: RemovalReason) -> None:
        self.contexts.release(owner)
        self.manager.note_released(owner, reason)

    def delete_doomed(self) -> None:
        doomed = self.manager.doomed()
        self.contexts.delete(doomed)
        self.manager.note_removed(doomed, RemovalReason.SUPERSEDED)

    def keep(self, tokens: Sequence[int], key: ReuseKey | None = None, captures: Sequence[int] = ()) -> int:
        """A finished request from root; its owner."""
        request = self.begin(tokens, key)
        for frontier in captures:
            self.capture(request, frontier)
        self.finish(request)
        return request.owner

    def offers(self, tokens: Sequence[int], key: ReuseKey | None = None) -> list[SourceOffer]:
        key = key or ReuseKey()
        return self.manager.shortlist(FakePrompt(tuple(tokens), key.salt), key)


def aborted(removed: Sequence[int] = ()) -> FakeResult:
    return FakeResult("cancelled", list(removed))
