"""Where clients' threads leave requests and cancellations for the engine's thread: all that they share."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass, field

from ninfer.engine.catalog_view import CatalogView
from ninfer.engine.request import Request
from ninfer.errors import EngineFailedError, QueueFullError


@dataclass(frozen=True)
class Mail:
    """What arrived since the last look. cancels: request id -> reason."""

    submissions: list[Request] = field(default_factory=list)
    cancels: dict[int, str] = field(default_factory=dict)


_NO_MAIL = Mail()


class Intake:
    """Life: open until `close`; then every `post` is refused with the reason given there.

    `live` holds every request from its submission until its last event is about to be told; at most `capacity` of them.
    Only the engine's thread calls `take`, `take_questions`, `wait`, `forget`, `close` and sets `retry_after`.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._changed = threading.Condition()
        self._submissions: list[Request] = []
        self._cancels: dict[int, str] = {}
        self._questions: list[Future[CatalogView]] = []
        self._live: dict[int, Request] = {}
        self._closed: str | None = None
        self._has_mail = False
        self.stopping = False
        self.retry_after = 1

    def post(self, request: Request) -> None:
        """Raises EngineFailedError once closed, QueueFullError while too many requests live."""
        with self._changed:
            if self._closed is not None:
                raise EngineFailedError(self._closed)
            if len(self._live) >= self._capacity:
                raise QueueFullError(len(self._live), self.retry_after)
            self._live[request.id] = request
            self._submissions.append(request)
            self._notify()

    def cancel(self, request_id: int, reason: str) -> None:
        """The first reason counts; a request that has ended, or never was, is ignored."""
        with self._changed:
            if request_id in self._live:
                self._cancels.setdefault(request_id, reason)
                self._notify()

    def ask(self) -> Future[CatalogView]:
        """The engine's thread will answer between two model units. Raises EngineFailedError once closed."""
        question: Future[CatalogView] = Future()
        with self._changed:
            if self._closed is not None:
                raise EngineFailedError(self._closed)
            self._questions.append(question)
            self._notify()
        return question

    def stop(self) -> None:
        with self._changed:
            self.stopping = True
            self._notify()

    def live(self) -> list[Request]:
        """In the order of submission."""
        with self._changed:
            return list(self._live.values())

    def take(self) -> Mail:
        # Looked at twice a round, so without the lock: mail that is missed now is seen at the next look.
        if not self._has_mail:
            return _NO_MAIL
        with self._changed:
            mail = Mail(self._submissions, self._cancels)
            self._submissions, self._cancels, self._has_mail = [], {}, False
        return mail

    def take_questions(self) -> list[Future[CatalogView]]:
        if not self._questions:
            return []
        with self._changed:
            questions, self._questions = self._questions, []
        return _still_asked(questions)

    def wait(self) -> None:
        """Returns once there is mail or a question, or the engine is to stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_mail or self._questions or self.stopping)

    def forget(self, request: Request) -> None:
        """The request has ended; its place is free."""
        with self._changed:
            self._live.pop(request.id)

    def close(self, reason: str) -> None:
        with self._changed:
            self._closed = reason
            questions, self._questions = self._questions, []
        for question in _still_asked(questions):
            question.set_exception(EngineFailedError(reason))

    def _notify(self) -> None:
        self._has_mail = True
        self._changed.notify_all()


def _still_asked(questions: list[Future[CatalogView]]) -> list[Future[CatalogView]]:
    """Those that nobody has taken back; from here on nobody can."""
    return [question for question in questions if question.set_running_or_notify_cancel()]
