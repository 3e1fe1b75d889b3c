"""The application: every endpoint over one engine."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import APIRouter, Depends, FastAPI

from ninfer.serving.answers import SHAPES
from ninfer.serving.body_budget import BodyBudget
from ninfer.serving.completion.routes import add_completion_routes
from ninfer.serving.completion.wire import NativeCompletionBody
from ninfer.serving.engine_port import EnginePort
from ninfer.serving.event_router import EventRouter
from ninfer.serving.http_errors import install_error_handlers
from ninfer.serving.info_routes import add_info_routes
from ninfer.serving.openai.routes import add_openai_routes
from ninfer.serving.openai.wire import ChatBody, CompletionBody, RenderFields
from ninfer.serving.openapi import install_openapi
from ninfer.serving.running_generation import Generations
from ninfer.serving.served_model import ServedModel
from ninfer.serving.server import MAX_ANSWER_BYTES, Server
from ninfer.serving.serving_options import ServingOptions
from ninfer.serving.slot_routes import add_slot_routes
from ninfer.serving.text_routes import add_text_routes
from ninfer.serving.text_wire import DetokenizeBody, TokenizeBody
from ninfer.serving.text_workers import TextWorkers

# Of the interface, not of the program.
_API_VERSION = "1"
# Bodies of the largest size that may be in memory at once.
_FULL_BODIES = 8
# Answers of text endpoints that may wait for their readers at once.
_ANSWERS_BYTES = 2 * MAX_ANSWER_BYTES
_BODIES = (ChatBody, CompletionBody, NativeCompletionBody, TokenizeBody, DetokenizeBody, RenderFields)


def create_app(engine: EnginePort, router: EventRouter, model: ServedModel, options: ServingOptions) -> FastAPI:
    """The ASGI application. `engine` was made with `router.hand_over`; starting and stopping it is the caller's."""
    limit = options.max_queued + model.max_concurrency
    generations = Generations(engine, router, limit, options.request_timeout_s)
    bodies = BodyBudget(_FULL_BODIES * options.max_body_bytes)
    server = Server(engine, model, options, generations, TextWorkers(), bodies, BodyBudget(_ANSWERS_BYTES, "answers"))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        router.bind(asyncio.get_running_loop())
        # What was loaded lives as long as the server. Walking over it in every full collection would hold up all
        # answers for tens of milliseconds.
        gc.freeze()
        try:
            yield
        finally:
            gc.unfreeze()
            server.generations.close()
            server.text_workers.close()
            router.unbind()

    # The framework's own pages are open to all, and load programs from other servers.
    app = FastAPI(title="NInfer", version=_API_VERSION, lifespan=lifespan, openapi_url=None)
    install_error_handlers(app)
    locked = APIRouter(dependencies=[Depends(server.check_key)])
    add_openai_routes(locked, server)
    add_completion_routes(locked, server)
    add_text_routes(locked, server)
    add_slot_routes(locked, server)
    app.include_router(locked)
    public = APIRouter()
    add_info_routes(public, server)
    app.include_router(public)
    install_openapi(app, (*_BODIES, *SHAPES), [Depends(server.check_key)])
    return app
