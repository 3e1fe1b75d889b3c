"""From where a request may start before the head of the queue, so that the head provably waits no longer."""

from __future__ import annotations

from collections.abc import Sequence

from ninfer import native
from ninfer.engine.capacity import PAGE_TOKENS
from ninfer.engine.loop_parts import LoopParts
from ninfer.engine.request import Request
from ninfer.engine.start_options import StartOption
from ninfer.resources.source_offer import SourceOffer


class Loan:
    """The proof: with the head's donors finished, the borrower still holding everything it was promised, and all
    unprotected cache released, the head's root plan fits, and it finds a cell. What the borrower starts from stays as
    long as it runs, so that is part of what it holds: a source that it leaves alone with its whole owner, an owner that
    it takes over with the checkpoints on the way. A proof holds at one revision."""

    def __init__(self, parts: LoopParts, head: Request, borrower: Request) -> None:
        self._parts = parts
        self.head = head
        self.borrower = borrower

    def allows_root(self) -> bool:
        return self._fits(self.borrower.plan.reserved_tokens, 0, []) and self._leaves_a_cell(None)

    def allows(self, option: StartOption) -> bool:
        """Starting from there."""
        offer, tokens = option.offer, self.borrower.plan.reserved_tokens
        if offer is None:
            return self.allows_root()
        if not self._leaves_a_cell(offer):
            return False
        if offer.takes_owner:
            # Of what stays below the start only the last page of a checkpoint is not the sequence's own.
            partial = sum(frontier % PAGE_TOKENS != 0 for frontier in self._frontiers(offer.owner))
            return self._fits(tokens, partial, [])
        return self._fits(*self._beside(option, offer), [offer.owner])

    def _beside(self, option: StartOption, offer: SourceOffer) -> tuple[int, int]:
        """Tokens and pages beside a source that stays. Its whole pages are the sequence's too, if they are on Device
        already; else they come there, and the page that is copied with them."""
        source = native.must(self._parts.program.checkpoint(offer.checkpoint))
        tokens = self.borrower.plan.reserved_tokens
        if source.pages_on_device < source.pages:
            return tokens, 1
        return tokens - option.candidate.frontier // PAGE_TOKENS * PAGE_TOKENS, 0

    def _frontiers(self, owner: int) -> list[int]:
        checkpoints = native.must(self._parts.program.owner(owner)).checkpoints
        return [native.must(self._parts.program.checkpoint(one)).frontier for one in checkpoints]

    def _fits(self, tokens: int, pages: int, kept: Sequence[int]) -> bool:
        """kept: owners that the borrower protects."""
        donors = [one.open_sequence for one in self._parts.scheduler.donors(self.head)]
        manager = self._parts.manager
        protected = [] if manager is None else manager.protected_owners()
        proof = self._parts.program.prove_backfill(
            (self.head.plan.reserved_tokens, 0), (tokens, pages), donors, [*protected, *kept]
        )
        return not isinstance(proof, native.Refusal)

    def _leaves_a_cell(self, offer: SourceOffer | None) -> bool:
        """Whether a cell is left when everybody who is not a donor still has its own and that of its source."""
        manager = self._parts.manager
        if manager is None or not self.head.key.publishes:
            return True
        taken = _cells(self.borrower.key.publishes, offer)
        for other in self._parts.scheduler.overtakers(self.head):
            if other.claim is not None:
                taken += _cells(other.claim.cell is not None, other.claim.offer)
        return taken < manager.options.max_private_continuations


def _cells(publishes: bool, offer: SourceOffer | None) -> int:
    beside = offer is not None and offer.cell is not None and not offer.takes_owner
    return int(publishes) + int(beside)
