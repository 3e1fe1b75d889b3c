"""A request inside the engine: what was asked, where it stands, and the only way from one state to the next."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from ninfer import native
from ninfer.engine.events import Deliver, EngineEvent
from ninfer.engine.generation_plan import GenerationPlan
from ninfer.engine.output_session import OutputSession
from ninfer.engine.reuse_report import NO_CACHE, ReuseReport
from ninfer.engine.sampling_params import SamplingParams
from ninfer.frontend.prompt_boundaries import RAW_PROMPT, PromptBoundaries
from ninfer.resources.capture_policy import CaptureCandidate, CaptureFacts
from ninfer.resources.checkpoint_kind import CheckpointKind
from ninfer.resources.claim import Claim
from ninfer.resources.reuse_key import ReuseKey


@dataclass(frozen=True)
class CacheHints:
    """What the client says about reuse. use: whether the prompt cache may serve and keep this request at all.

    salt: reuse only among requests with the same one, unless `sharing`, which makes it a session's name. structural:
    whether its tools and instructions may become shared prefixes that nobody asked for (D-25).
    """

    use: bool = True
    salt: str | None = None
    session_id: str | None = None
    sharing: bool | None = None
    structural: bool = True

    def key(self) -> ReuseKey:
        """Under which name the request may read and be kept."""
        if self.sharing and self.salt:
            return ReuseKey("", self.session_id or self.salt, self.use, self.use)
        return ReuseKey(self.salt or "", self.session_id, self.use, self.use)


@dataclass(frozen=True)
class EngineRequest:
    """What a client asks for. prompt: token ids; timeout_s: longest time from its arrival to the end of the output.

    arrived: when the client asked, in seconds of the engine's clock; None for now. boundaries: where messages begin in
    the prompt, if it is a conversation.
    """

    prompt: list[int]
    params: SamplingParams
    arrived: float | None = None
    timeout_s: float | None = None
    report_progress: bool = False
    cache: CacheHints = field(default_factory=CacheHints)
    boundaries: PromptBoundaries = RAW_PROMPT


class RequestState(enum.Enum):
    """QUEUED holds nothing but its place. MATERIALIZING has a claim on its source, and the engine's one open
    transaction makes its sequence. PREFILLING and DECODING hold a sequence with everything reserved. TERMINAL_PENDING
    is over and holds everything until the program has finished or discarded its sequence. The others are ends."""

    QUEUED = "queued"
    MATERIALIZING = "materializing"
    PREFILLING = "prefilling"
    DECODING = "decoding"
    TERMINAL_PENDING = "terminal_pending"
    FINISHED = "finished"
    CANCELLED = "cancelled"
    FAILED = "failed"


ENDS = frozenset({RequestState.FINISHED, RequestState.CANCELLED, RequestState.FAILED})
# A transaction whose copy failed sends its request back to the queue. Any request fails with the engine.
LEGAL_MOVES: dict[RequestState, frozenset[RequestState]] = {
    RequestState.QUEUED: frozenset(
        {RequestState.MATERIALIZING, RequestState.PREFILLING, RequestState.CANCELLED, RequestState.FAILED}
    ),
    RequestState.MATERIALIZING: frozenset(
        {RequestState.QUEUED, RequestState.PREFILLING, RequestState.CANCELLED, RequestState.FAILED}
    ),
    RequestState.PREFILLING: frozenset({RequestState.DECODING, RequestState.TERMINAL_PENDING, RequestState.FAILED}),
    RequestState.DECODING: frozenset({RequestState.TERMINAL_PENDING, RequestState.FAILED}),
    RequestState.TERMINAL_PENDING: ENDS,
    RequestState.FINISHED: frozenset(),
    RequestState.CANCELLED: frozenset(),
    RequestState.FAILED: frozenset(),
}


@dataclass(frozen=True, slots=True)
class Ending:
    """How a request is to end: its state and last events. keep: as what its sequence stays; None discards it."""

    state: RequestState
    events: list[EngineEvent]
    keep: CheckpointKind | None = None


@dataclass(eq=False, slots=True)
class Request:
    """The engine's record of one request; only the worker thread changes it after submission.

    Times are the engine clock's seconds; `arrived` is when the client asked. `sequence` is set exactly while the
    request holds one, `claim` while the catalog knows it. `captures`: the checkpoints that its prefill will still
    leave, ascending. `base`: tokens that it did not compute. `broken`: why it is to be cancelled as soon as its
    transaction has ended. `unsalted`: a salted request's prompt as it would be without. `overtook`: the head of the
    queue that it was admitted before. `structural`: see CacheHints.
    """

    id: int
    plan: GenerationPlan
    output: OutputSession
    prompt: native.PreparedPrompt
    deliver: Deliver | None
    arrived: float
    unsalted: native.PreparedPrompt | None = None
    deadline: float | None = None
    report_progress: bool = False
    key: ReuseKey = field(default_factory=ReuseKey)
    boundaries: PromptBoundaries = RAW_PROMPT
    structural: bool = True
    state: RequestState = field(default=RequestState.QUEUED, init=False)
    sequence: int | None = field(default=None, init=False)
    claim: Claim | None = field(default=None, init=False)
    captures: list[CaptureCandidate] = field(default_factory=list, init=False)
    capture_facts: CaptureFacts | None = field(default=None, init=False)
    base: int = field(default=0, init=False)
    prefilled: int = field(default=0, init=False)
    reuse: ReuseReport = field(default=NO_CACHE, init=False)
    planning_us: int = field(default=0, init=False)
    admitted: float = field(default=0.0, init=False)
    first_token: float = field(default=0.0, init=False)
    sources_lost: bool = field(default=False, init=False)
    broken: str | None = field(default=None, init=False)
    overtook: Request | None = field(default=None, init=False)
    ending: Ending | None = field(default=None, init=False)

    @property
    def open_sequence(self) -> int:
        """The handle of the sequence it holds."""
        assert self.sequence is not None, f"request {self.id} is {self.state} and holds none"
        return self.sequence

    @property
    def ended(self) -> bool:
        return self.state in ENDS


def move(request: Request, state: RequestState) -> None:
    """The one function that changes a request's state."""
    assert state in LEGAL_MOVES[request.state], f"request {request.id}: {request.state} to {state}"
    request.state = state
