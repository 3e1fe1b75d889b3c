"""What is known about one request when it is over, for the logs. It never holds what a client wrote, save for its
token ids, and those only until a digest of them is taken."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime

from starlette.types import Scope

from ninfer.engine.events import Cancelled, Failed, Finished
from ninfer.serving.generation_request import GenerationRequest
from ninfer.serving.running_generation import RunningGeneration

CLIENT_LEFT_STATUS = 499
_KEY = "ninfer.request_record"
_SHOWN_PATH_CHARACTERS = 80


@dataclass(eq=False)
class RequestRecord:
    """Filled on the event loop while the request is served. seconds: from its headers to its end; status: of the
    response, None if none was sent."""

    method: str
    id: str = field(default_factory=lambda: f"req-{uuid.uuid4().hex[:16]}")
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    endpoint: str = ""
    status: int | None = None
    client_left: bool = False
    running: RunningGeneration | None = None
    seconds: float = 0.0
    _started: float = field(default_factory=time.monotonic)

    @property
    def generation(self) -> GenerationRequest | None:
        return None if self.running is None else self.running.request

    @property
    def outcome(self) -> Finished | Cancelled | Failed | None:
        """The engine's last word, if the client waited for it."""
        return None if self.running is None else self.running.outcome

    @property
    def final_status(self) -> int:
        """What counts: a stream whose client left had begun with 200."""
        if self.client_left:
            return CLIENT_LEFT_STATUS
        return 500 if self.status is None else self.status

    def end(self, scope: Scope) -> None:
        self.seconds = time.monotonic() - self._started
        self.endpoint = _endpoint(scope)


def begin_record(scope: Scope) -> RequestRecord:
    """From here on the request's scope carries its record."""
    record = RequestRecord(scope["method"])
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


def _endpoint(scope: Scope) -> str:
    """The route that answered; for none, the path as it came, without what would steer a terminal."""
    route = getattr(scope.get("route"), "path", None)
    if isinstance(route, str):
        return route
    path = scope["raw_path"].decode("ascii", "backslashreplace")
    shown = "".join(one if one.isprintable() else "?" for one in path[:_SHOWN_PATH_CHARACTERS])
    return shown if len(path) <= _SHOWN_PATH_CHARACTERS else f"{shown}…"
