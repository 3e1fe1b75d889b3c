"""What is known about one request when it is over, for the logs. It never holds what a client wrote: of a
prompt there is a digest."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime

from starlette.types import Scope

from ninfer.engine.events import Cancelled, Failed, Finished
from ninfer.serving.generation_request import GenerationRequest
from ninfer.serving.running_generation import RunningGeneration
from ninfer.serving.shown_request import shown_endpoint, shown_method

CLIENT_LEFT_STATUS = 499
_KEY = "ninfer.request_record"


@dataclass(eq=False)
class RequestRecord:
    """Filled on the event loop while the request is served. seconds: from its headers to its end; status: of the
    response, None if none was sent. At the end `running` gives way to what was asked, and to the engine's last word if
    the client waited for it."""

    method: str
    id: str = field(default_factory=lambda: f"req-{uuid.uuid4().hex[:16]}")
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    endpoint: str = ""
    status: int | None = None
    client_left: bool = False
    running: RunningGeneration | None = None
    generation: GenerationRequest | None = None
    outcome: Finished | Cancelled | Failed | None = None
    seconds: float = 0.0
    _started: float = field(default_factory=time.monotonic)

    @property
    def final_status(self) -> int:
        """What counts: a stream whose client left had begun with 200."""
        if self.client_left:
            return CLIENT_LEFT_STATUS
        return 500 if self.status is None else self.status

    def end(self, scope: Scope) -> None:
        self.seconds = time.monotonic() - self._started
        self.endpoint = shown_endpoint(scope)
        if self.running is not None:
            # Records may wait for a slow disk: what else belongs to a generation does not wait with them.
            self.generation, self.outcome, self.running = self.running.request, self.running.outcome, None


def begin_record(scope: Scope) -> RequestRecord:
    """From here on the request's scope carries its record."""
    record = RequestRecord(shown_method(scope))
    scope[_KEY] = record
    return record


def note_generation(scope: Scope, running: RunningGeneration) -> None:
    record = _record(scope)
    if record is not None:
        record.running = running


def note_client_left(scope: Scope) -> None:
    record = _record(scope)
    if record is not None:
        record.client_left = True


def _record(scope: Scope) -> RequestRecord | None:
    """None where nobody keeps records, as in tests."""
    record = scope.get(_KEY)
    assert record is None or isinstance(record, RequestRecord), f"{type(record)} is no record"
    return record
