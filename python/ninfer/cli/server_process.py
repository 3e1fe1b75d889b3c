"""The life of a server's process, from the bound socket to the exit status."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from fastapi import FastAPI

from ninfer.cli.load_with_progress import LoadProgress
from ninfer.cli.resolved_values import resolved_values
from ninfer.cli.stop_signals import StopSignals, ignore_signals
from ninfer.config.store_location import cache_directory
from ninfer.economics.calibration import CalibrationFile
from ninfer.engine.engine import load_model
from ninfer.engine.loaded_model import LoadedModel
from ninfer.engine.service import EngineService
from ninfer.serving.app import create_app
from ninfer.serving.console_line import log_to_console
from ninfer.serving.entrance import Entrance
from ninfer.serving.event_router import EventRouter
from ninfer.serving.http_protocol import server_config
from ninfer.serving.http_server import HttpServer
from ninfer.serving.listening import listen, server_url
from ninfer.serving.observed_requests import RecordSink
from ninfer.serving.open_files import allow_connections
from ninfer.serving.request_log import RequestLog
from ninfer.serving.served_model import ServedModel
from ninfer.serving.server_options import ServerOptions

# The engine stops after the model unit it is in. What is left of the five seconds is for the answers' last events.
_ENGINE_STOP_S = 3.0


@dataclass(frozen=True)
class _Loaded:
    model: LoadedModel
    engine: EngineService
    app: FastAPI


class ServerProcess:
    """Life: `run`, once. The socket is bound first, then requests are answered 503 while the model loads, then served;
    a signal ends it in each of these states with exit status 0."""

    def __init__(self, options: ServerOptions, find_model: Callable[[], Path]) -> None:
        """find_model: path of the model; may take long, and raise whatever loading raises."""
        self._options = options
        self._find_model = find_model
        self._name = options.serving.served_model_names[0]
        self._entrance = Entrance(f"{self._name} is loading")
        self._router = EventRouter()
        self._engine: EngineService | None = None

    def run(self) -> None:
        """Returns when a signal has ended it. What it leaves behind may still compute: end the process without waiting
        for its threads. Raises OptionError for a port that is taken or more
        connections than the system allows, and what loading a model raises."""
        allow_connections(self._options.serving.max_connections)
        file = self._options.request_log
        log = None if file is None else RequestLog(file)
        sinks: list[RecordSink] = [log_to_console] if log is None else [log_to_console, log]
        sockets = listen(self._options.host, self._options.port)
        try:
            asyncio.run(self._live(sockets, sinks))
        finally:
            # The process ends by itself now, and nothing may give it another exit status.
            ignore_signals()
            if log is not None:
                log.close()

    async def _live(self, sockets: list[socket.socket], sinks: Sequence[RecordSink]) -> None:
        options = self._options
        config = server_config(self._entrance, options.serving, options.host, options.port, sinks)
        http = HttpServer(config, self._stop_engine)
        serving = asyncio.create_task(http.serve(sockets))
        signals = StopSignals(asyncio.get_running_loop(), http)
        url = server_url(options.host, sockets)
        loading = self._start_loading()
        stopped = asyncio.ensure_future(signals.stopped.wait())
        try:
            await asyncio.wait((loading, stopped, serving), return_when=asyncio.FIRST_COMPLETED)
            # Both may have come at once: what is stopped does not begin.
            if loading.done() and not signals.stopped.is_set():
                await self._serve(loading.result(), url, serving)
        finally:
            http.should_exit = True
            await serving
            stopped.cancel()

    async def _serve(self, loaded: _Loaded, url: str, serving: asyncio.Task[None]) -> None:
        # What loading left over goes; the application keeps the collector from what stays.
        gc.collect()
        async with loaded.app.router.lifespan_context(loaded.app):
            self._engine = loaded.engine
            loaded.engine.start()
            self._entrance.open(loaded.app)
            _say([*resolved_values(self._options, loaded.model), f"listening on {url}"])
            await serving

    def _start_loading(self) -> asyncio.Future[_Loaded]:
        """On a thread that does not keep the process alive: nothing can interrupt the loading of a file."""
        loop = asyncio.get_running_loop()
        loading: asyncio.Future[_Loaded] = loop.create_future()

        def settle(loaded: _Loaded | None, error: BaseException | None) -> None:
            if error is not None:
                loading.set_exception(error)
            elif loaded is not None:
                loading.set_result(loaded)

        def load() -> None:
            loaded, failure = None, None
            try:
                loaded = self._load()
            except BaseException as error:  # raised again where the loading is awaited
                failure = error
            loop.call_soon_threadsafe(settle, loaded, failure)

        threading.Thread(target=load, name="ninfer-load", daemon=True).start()
        return loading

    def _load(self) -> _Loaded:
        path = self._find_model()
        with LoadProgress() as bar:

            def progress(done: int, total: int) -> None:
                bar.show(done, total)
                self._entrance.reason = f"{self._name} is loading: {done * 100 // max(total, 1)} % of its weights"

            model = load_model(
                path, self._options.engine, datetime.now, progress, CalibrationFile(cache_directory(os.environ))
            )
        engine = EngineService(model, max_queued=self._options.serving.max_queued, hand_over=self._router.hand_over)
        return _Loaded(model, engine, create_app(engine, self._router, ServedModel.of(model), self._options.serving))

    def _stop_engine(self) -> None:
        if self._engine is None:
            return
        try:
            self._engine.stop(_ENGINE_STOP_S)
        finally:
            self._router.close("shutdown")


def _say(lines: Sequence[str]) -> None:
    # Whoever has stopped reading does not want to know.
    with suppress(OSError):
        print("\n".join(lines), flush=True)
