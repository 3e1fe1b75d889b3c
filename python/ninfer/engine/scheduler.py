"""Who runs next: the head of the queue, one staged prompt, and all ready rows in every decode round."""

from __future__ import annotations

from collections import deque
from itertools import islice

from ninfer.engine.capacity import PAGE_TOKENS
from ninfer.engine.request import Request, RequestState, move

# A prefill unit that holds up running answers gets a fifth of the time of one that holds up nobody.
_DECODING_CHUNK_DIVISOR = 5


class Scheduler:
    """Order and membership; it computes nothing and knows no program.

    Invariants: the queue is in the order of submission. At most one request is MATERIALIZING or PREFILLING (`staged`).
    Exactly the DECODING ones are in `decoding`, oldest first, and exactly the TERMINAL_PENDING ones in `ending`. A
    request is in one place; an ended one in none.
    """

    def __init__(self, max_concurrency: int, prefill_chunk: int) -> None:
        self._lanes = max_concurrency
        self._chunk = prefill_chunk
        self._decoding_chunk = min(prefill_chunk, max(PAGE_TOKENS, prefill_chunk // _DECODING_CHUNK_DIVISOR))
        self._queue: deque[Request] = deque()
        self.staged: Request | None = None
        self.decoding: list[Request] = []
        self.ending: list[Request] = []

    @property
    def running(self) -> int:
        """Requests that hold a sequence, or are about to."""
        return len(self.decoding) + len(self.ending) + (self.staged is not None)

    @property
    def queued(self) -> int:
        return len(self._queue)

    @property
    def idle(self) -> bool:
        return not self._queue and self.running == 0

    @property
    def prefilling(self) -> Request | None:
        """The staged request, if it has its sequence."""
        staged = self.staged
        return staged if staged is not None and staged.state is RequestState.PREFILLING else None

    @property
    def prefill_limit(self) -> int:
        """Most tokens of the next prefill unit."""
        return self._decoding_chunk if self.decoding else self._chunk

    def enqueue(self, request: Request) -> None:
        assert request.state is RequestState.QUEUED, request.state
        self._queue.append(request)

    def candidate(self) -> Request | None:
        """The head of the queue, if a lane is free and no other prompt is staged."""
        if self.staged is not None or not self._queue or self.running >= self._lanes:
            return None
        return self._queue[0]

    def behind_head(self) -> list[Request]:
        """Those that may only start before the head if they do not make it wait longer."""
        return list(islice(self._queue, 1, None))

    def donors(self, head: Request) -> list[Request]:
        """Running requests that were not admitted before the head: it waits for their end anyway."""
        running = [*self.decoding, *self.ending]
        return [one for one in running if one.overtook is not head]

    def overtakers(self, head: Request) -> list[Request]:
        """Running requests that were admitted before the head."""
        return [one for one in [*self.decoding, *self.ending] if one.overtook is head]

    def stage(self, request: Request, state: RequestState) -> None:
        """The request leaves the queue and begins, MATERIALIZING or PREFILLING."""
        assert self.staged is None and state in (RequestState.MATERIALIZING, RequestState.PREFILLING), request.id
        self._queue.remove(request)
        move(request, state)
        self.staged = request

    def start_prefill(self, request: Request) -> None:
        """The staged request has its sequence now."""
        assert self.staged is request, request.id
        move(request, RequestState.PREFILLING)

    def put_back(self, request: Request) -> None:
        """The staged request could not get its sequence: it has its old place in the queue again."""
        assert self.staged is request, request.id
        move(request, RequestState.QUEUED)
        self.staged = None
        self._queue.insert(sum(one.id < request.id for one in self._queue), request)

    def start_decoding(self, request: Request) -> None:
        """The staged request's prompt is computed and its first token accepted."""
        assert self.staged is request, request.id
        move(request, RequestState.DECODING)
        self.staged = None
        self.decoding.append(request)

    def close(self, request: Request) -> None:
        """The request computes no more, but holds its sequence until `end`."""
        self._take_out(request)
        move(request, RequestState.TERMINAL_PENDING)
        self.ending.append(request)

    def end(self, request: Request, state: RequestState) -> None:
        """Takes the request out, wherever it is."""
        self._take_out(request)
        move(request, state)
        assert request.ended, state

    def _take_out(self, request: Request) -> None:
        if request.state is RequestState.QUEUED:
            self._queue.remove(request)
        elif self.staged is request:
            self.staged = None
        elif request.state is RequestState.TERMINAL_PENDING:
            self.ending.remove(request)
        else:
            self.decoding.remove(request)
