"""GET /v1/models, /health and /props: what is served here, and whether it works."""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter, Depends, Request, Response

from ninfer.serving.generation_request import served_name
from ninfer.serving.get_route import add_get_route
from ninfer.serving.http_errors import unavailable
from ninfer.serving.info_answers import HealthAnswer, ModelAnswer, ModelListAnswer, PropsAnswer, UnhealthyAnswer
from ninfer.serving.openapi import LOCKED_ERRORS, described
from ninfer.serving.server import Server, json_response


def add_info_routes(router: APIRouter, server: Server) -> None:
    """`router` is open to all; what is not, asks for the key itself."""
    locked = [Depends(server.check_key)]
    created = int(time.time())

    async def models(_: Request) -> Response:
        """The names that requests may use."""
        names = server.options.served_model_names
        return json_response({"object": "list", "data": [_model(server, name, created) for name in names]})

    async def model(name: str) -> Response:
        """One of them."""
        return json_response(_model(server, served_name(name, server.options.served_model_names), created))

    async def health(_: Request) -> Response:
        """Whether requests are taken; 503 with the reason if not."""
        found = server.engine.health
        if found.state == "ready":
            return json_response({"status": "ok"})
        body = unavailable(found.reason or f"the engine is {found.state}").body()
        return json_response({"status": found.state, **body}, 503)

    async def props(_: Request) -> Response:
        """The resolved sizes, the defaults of sampling and the chat template."""
        return json_response(_props(server))

    for prefix in ("/v1", ""):
        shown = bool(prefix)
        for path, endpoint, extra in (
            ("/models", models, described(ModelListAnswer, errors=LOCKED_ERRORS)),
            ("/models/{name:path}", model, described(ModelAnswer, errors=(*LOCKED_ERRORS, 404))),
        ):
            add_get_route(
                router, prefix + path, endpoint, dependencies=locked, include_in_schema=shown, openapi_extra=extra
            )
        extra = described(HealthAnswer, unavailable=UnhealthyAnswer)
        add_get_route(router, f"{prefix}/health", health, include_in_schema=not shown, openapi_extra=extra)
        extra = described(PropsAnswer, errors=LOCKED_ERRORS)
        add_get_route(
            router, f"{prefix}/props", props, dependencies=locked, include_in_schema=not shown, openapi_extra=extra
        )


def _model(server: Server, name: str, created: int) -> dict[str, Any]:
    model = server.model
    return {
        "id": name,
        "object": "model",
        "created": created,
        "owned_by": "ninfer",
        "max_model_len": model.max_context,
        "meta": {"n_ctx_train": model.trained_context, "n_vocab": model.vocab_size},
    }


def _props(server: Server) -> dict[str, Any]:
    model = server.model
    sampling = model.default_sampling
    tokenizer = model.frontend.tokenizer
    template = model.frontend.template
    names = ("temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty")
    params = {name: getattr(sampling, name) for name in names}
    return {
        "default_generation_settings": {
            "n_ctx": model.max_context,
            "params": {**params, "repeat_penalty": sampling.repetition_penalty, "n_predict": model.default_max_tokens},
        },
        "total_slots": model.max_concurrency,
        "model_alias": server.options.served_model_names[0],
        "chat_template": None if template is None else template.source.default,
        "bos_token": tokenizer.named_tokens.get("bos_token"),
        "eos_token": tokenizer.named_tokens.get("eos_token"),
        "modalities": {"vision": False, "audio": False},
    }
