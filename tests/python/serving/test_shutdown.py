"""A server that stops tells every client, quickly."""

from __future__ import annotations

import time
from datetime import datetime

import httpx2

from ninfer.config.engine_options import EngineOptions
from ninfer.demo import HYBRID_DIRECTORY
from ninfer.engine.engine import load_model
from ninfer.engine.service import EngineService
from ninfer.serving.app import create_app
from ninfer.serving.event_router import EventRouter
from ninfer.serving.served_model import ServedModel
from ninfer.serving.serving_options import ServingOptions
from tests.python.serving.event_stream import stream_chunks
from tests.python.serving.live_server import serving

ENDLESS = {"prompt": "one two", "max_tokens": 16_000, "ignore_eos": True, "stream": True}


def test_running_and_queued_streams_end_with_an_error_event() -> None:
    options = EngineOptions(threads=2, max_context=16_384, kv_capacity=16_384, max_concurrency=1)
    loaded = load_model(HYBRID_DIRECTORY, options, datetime.now)
    router = EventRouter()
    engine = EngineService(loaded, max_queued=4, hand_over=router.hand_over)
    engine.start()
    serving_options = ServingOptions(served_model_names=("demo",))
    app = create_app(engine, router, ServedModel.of(loaded), serving_options)
    with httpx2.Client(timeout=20) as client:
        with serving(app, serving_options, lambda: engine.stop(5)) as port:
            url = f"http://127.0.0.1:{port}/v1/completions"
            running = client.send(client.build_request("POST", url, json=ENDLESS), stream=True)
            text = running.iter_text()
            begun = next(text)
            queued = client.send(client.build_request("POST", url, json=ENDLESS), stream=True)
            assert (engine.snapshot().running, engine.snapshot().queued) == (1, 1)
            start = time.monotonic()
        assert time.monotonic() - start < 5
        for stream in (begun + "".join(text), "".join(queued.iter_text())):
            error = stream_chunks(stream)[-1]["error"]
            assert "shutdown" in error["message"] and error["code"] == "unavailable"
    assert engine.health.state == "stopped" and router.open_entries == 0
