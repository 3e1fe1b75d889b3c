"""The engine as serving sees it: a service with one worker thread, or a double in tests."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol

from ninfer.engine.catalog_view import CatalogView
from ninfer.engine.request import EngineRequest
from ninfer.engine.service import EngineHealth


class EnginePort(Protocol):
    """See EngineService. Events reach the server through the `hand_over` that the engine was made with."""

    @property
    def health(self) -> EngineHealth: ...

    def submit(self, request: EngineRequest) -> int: ...

    def ask_catalog(self) -> Future[CatalogView]: ...

    def cancel(self, request_id: int, reason: str) -> None: ...
