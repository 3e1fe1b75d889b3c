"""Who runs next: the head of the queue, one staged prefill, and all ready rows in every decode round."""

from __future__ import annotations

from collections import deque

from ninfer.engine.capacity import PAGE_TOKENS
from ninfer.engine.request import Request, RequestState, move

# A prefill unit that holds up running answers gets a fifth of the time of one that holds up nobody.
_DECODING_CHUNK_DIVISOR = 5


class Scheduler:
    """Order and membership; it computes nothing and knows no program.

    Invariants: requests start in the order of their submission, nobody overtakes a head that does not fit yet. At most
    one request is PREFILLING (`staged`). Exactly the DECODING ones are in `decoding`, oldest first. A request is in one
    place; an ended one in none.
    """

    def __init__(self, max_concurrency: int, prefill_chunk: int) -> None:
        self._lanes = max_concurrency
        self._chunk = prefill_chunk
        self._decoding_chunk = min(prefill_chunk, max(PAGE_TOKENS, prefill_chunk // _DECODING_CHUNK_DIVISOR))
        self._queue: deque[Request] = deque()
        self._blocked = False
        self.staged: Request | None = None
        self.decoding: list[Request] = []

    @property
    def running(self) -> int:
        """Requests that hold a sequence."""
        return len(self.decoding) + (self.staged is not None)

    @property
    def queued(self) -> int:
        return len(self._queue)

    @property
    def idle(self) -> bool:
        return not self._queue and self.running == 0

    @property
    def prefill_limit(self) -> int:
        """Most tokens of the next prefill unit."""
        return self._decoding_chunk if self.decoding else self._chunk

    def enqueue(self, request: Request) -> None:
        assert request.state is RequestState.QUEUED, request.state
        self._queue.append(request)

    def candidate(self) -> Request | None:
        """The head of the queue, if it may start now; None while nothing has changed since it was refused."""
        if self.staged is not None or self._blocked or not self._queue or self.running >= self._lanes:
            return None
        return self._queue[0]

    def refuse(self) -> None:
        """The candidate does not fit; it keeps its place and is tried again once another request has ended."""
        assert self._queue and self.running > 0, "a head that does not fit an idle engine would wait for ever"
        self._blocked = True

    def stage(self, request: Request) -> None:
        """The candidate has its sequence and starts its prompt."""
        assert self.staged is None and self._queue[0] is request, request.id
        move(self._queue.popleft(), RequestState.PREFILLING)
        self.staged = request

    def start_decoding(self, request: Request) -> None:
        """The staged request's prompt is computed and its first token accepted."""
        assert self.staged is request, request.id
        move(request, RequestState.DECODING)
        self.staged = None
        self.decoding.append(request)

    def end(self, request: Request, state: RequestState) -> None:
        """Takes the request out, wherever it is."""
        if request.state is RequestState.QUEUED:
            self._queue.remove(request)
        elif self.staged is request:
            self.staged = None
        else:
            self.decoding.remove(request)
        move(request, state)
        assert request.ended, state
        self._blocked = False
