"""A request inside the engine: what was asked, where it stands, and the only way from one state to the next."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from ninfer.engine.events import Deliver
from ninfer.engine.generation_plan import GenerationPlan
from ninfer.engine.output_session import OutputSession
from ninfer.engine.sampling_params import SamplingParams
from ninfer.frontend.prompt_boundaries import RAW_PROMPT, PromptBoundaries


@dataclass(frozen=True)
class CacheHints:
    """What the client says about reuse. use: whether the prompt cache may serve and keep this request at all.

    salt: reuse only among requests with the same one, unless `sharing`, which makes it a session's name.
    """

    use: bool = True
    salt: str | None = None
    session_id: str | None = None
    sharing: bool | None = None


@dataclass(frozen=True)
class EngineRequest:
    """What a client asks for. prompt: token ids; timeout_s: longest time from its arrival to the end of the output.

    arrived: when the client asked, in seconds of the engine's clock; None for now. boundaries: of the prompt.
    """

    prompt: list[int]
    params: SamplingParams
    arrived: float | None = None
    timeout_s: float | None = None
    report_progress: bool = False
    cache: CacheHints = field(default_factory=CacheHints)
    boundaries: PromptBoundaries = RAW_PROMPT


class RequestState(enum.Enum):
    """QUEUED holds nothing. PREFILLING and DECODING hold a sequence with everything reserved. The others are ends."""

    QUEUED = "queued"
    PREFILLING = "prefilling"
    DECODING = "decoding"
    FINISHED = "finished"
    CANCELLED = "cancelled"
    FAILED = "failed"


_BROKEN_OFF = frozenset({RequestState.CANCELLED, RequestState.FAILED})
# A prompt of which the first token ends the output goes from prefilling to finished.
LEGAL_MOVES: dict[RequestState, frozenset[RequestState]] = {
    RequestState.QUEUED: frozenset({RequestState.PREFILLING}) | _BROKEN_OFF,
    RequestState.PREFILLING: frozenset({RequestState.DECODING, RequestState.FINISHED}) | _BROKEN_OFF,
    RequestState.DECODING: frozenset({RequestState.FINISHED}) | _BROKEN_OFF,
    RequestState.FINISHED: frozenset(),
    RequestState.CANCELLED: frozenset(),
    RequestState.FAILED: frozenset(),
}


@dataclass(eq=False, slots=True)
class Request:
    """The engine's record of one request; only the worker thread changes it after submission.

    Times are the engine clock's seconds; `arrived` is when the client asked. `cache` waits for the prompt cache, which
    will read it; so far nobody does. `sequence` is set exactly while the request holds one.
    """

    id: int
    plan: GenerationPlan
    output: OutputSession
    deliver: Deliver | None
    arrived: float
    deadline: float | None = None
    report_progress: bool = False
    cache: CacheHints = field(default_factory=CacheHints)
    state: RequestState = field(default=RequestState.QUEUED, init=False)
    sequence: int | None = field(default=None, init=False)
    prefilled: int = field(default=0, init=False)
    admitted: float = field(default=0.0, init=False)
    first_token: float = field(default=0.0, init=False)

    @property
    def open_sequence(self) -> int:
        """The handle of the sequence it holds."""
        assert self.sequence is not None, f"request {self.id} is {self.state} and holds none"
        return self.sequence

    @property
    def ended(self) -> bool:
        return not LEGAL_MOVES[self.state]


def move(request: Request, state: RequestState) -> None:
    """The one function that changes a request's state."""
    assert state in LEGAL_MOVES[request.state], f"request {request.id}: {request.state} to {state}"
    request.state = state
