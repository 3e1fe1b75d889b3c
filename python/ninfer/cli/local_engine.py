"""The engine of a command that computes in its own process: the one of the server, with one client."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any

from ninfer.config.engine_options import EngineOptions
from ninfer.config.store_location import cache_directory
from ninfer.economics.calibration import CalibrationFile
from ninfer.engine.engine import load_model
from ninfer.engine.events import Cancelled, EngineEvent, Failed, Finished
from ninfer.engine.generation_plan import plan_generation
from ninfer.engine.loaded_model import LoadedModel
from ninfer.engine.native_model import Progress
from ninfer.engine.request import EngineRequest
from ninfer.engine.sampling_params import default_sampling
from ninfer.engine.service import EngineService
from ninfer.errors import EngineFailedError, RequestError
from ninfer.frontend.chat_encoder import EncodedChat
from ninfer.frontend.chat_prompt import ChatPrompt

# Requests that were left and have not noticed yet: each goes within one model unit.
_MOST_LEFT = 64
# A model unit takes a second at most; what takes longer than this is no longer waited for.
_STOP_S = 60.0


class LocalEngine:
    """Computes from its making on. Close it, or use it as a context manager."""

    def __init__(self, model: LoadedModel) -> None:
        self._model = model
        self._defaults = default_sampling(model.files.generation)
        self._service = EngineService(model, max_queued=_MOST_LEFT)
        self._service.start()

    @classmethod
    def load(cls, path: Path, options: EngineOptions, progress: Progress | None = None) -> LocalEngine:
        """Raises what loading a model raises."""
        return cls(load_model(path, options, datetime.now, progress, CalibrationFile(cache_directory(os.environ))))

    def encode_chat(self, prompt: ChatPrompt) -> EncodedChat:
        """Raises RequestError: no template, or one that refuses the messages, or more than the context holds."""
        return self._model.frontend.encode_chat(prompt, most_tokens=self._model.capacity.max_context)

    def request(self, chat: EncodedChat, sampling: Mapping[str, Any]) -> EngineRequest:
        """sampling: fields of SamplingParams that replace the model's defaults. Raises RequestError."""
        params = replace(self._defaults, **sampling)
        return EngineRequest(chat.token_ids, params, boundaries=chat.boundaries)

    def check(self, request: EngineRequest) -> None:
        """Raises RequestError for a request that would be refused."""
        plan_generation(self._model, request.prompt, request.params)

    def events(self, request: EngineRequest) -> Generator[EngineEvent]:
        """What happens to the request, up to Finished. Closing the generator cancels it.

        Raises RequestError for a request that cannot be served, EngineFailedError once the engine computes no more.
        """
        told: SimpleQueue[list[EngineEvent]] = SimpleQueue()
        self._leave()
        try:
            self._service.submit(request, told.put)
            while True:
                for event in told.get():
                    _raise_failure(event)
                    yield event
                    if isinstance(event, Finished):
                        return
        finally:
            self._leave()

    def close(self) -> None:
        """Ends what is being computed. Raises TimeoutError if the model unit in progress does not end."""
        self._service.stop(_STOP_S)

    def __enter__(self) -> LocalEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _leave(self) -> None:
        """All requests are this one client's, so that one whose id, or whose leaving, was interrupted goes too."""
        for request in self._service.snapshot().requests:
            self._service.cancel(request.id, "interrupted")


def _raise_failure(event: EngineEvent) -> None:
    if isinstance(event, Failed) and event.code == "no_finite_logit":
        raise RequestError("prompt", event.message)
    if isinstance(event, Failed | Cancelled):
        raise EngineFailedError(event.message if isinstance(event, Failed) else event.reason)
