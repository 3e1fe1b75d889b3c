"""GET /slots: the conversations that the prompt cache keeps."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response

from ninfer.resources.slot_facts import SlotFacts
from ninfer.serving.get_route import add_get_route
from ninfer.serving.info_answers import SlotListAnswer
from ninfer.serving.openapi import LOCKED_ERRORS, described
from ninfer.serving.server import Server, json_response


def add_slot_routes(router: APIRouter, server: Server) -> None:
    """`router` asks for the key."""

    async def slots(request: Request) -> Response:
        """The cells that hold something, as of the next moment between two units of the engine."""
        return await server.answered(request, _slots(server))

    for prefix in ("/v1", ""):
        add_get_route(
            router,
            f"{prefix}/slots",
            slots,
            include_in_schema=not prefix,
            openapi_extra=described(SlotListAnswer, errors=LOCKED_ERRORS),
        )


async def _slots(server: Server) -> Response:
    """Who leaves takes the question back: cancelling this cancels the future, which the engine then passes over."""
    view = await asyncio.wrap_future(server.engine.ask_catalog())
    return json_response([_slot(slot) for slot in view.slots])


def _slot(slot: SlotFacts) -> dict[str, Any]:
    return {
        "id": slot.cell,
        "n_tokens": slot.tokens,
        "checkpoints": [str(kind) for kind in slot.kinds],
        "bytes": {"device": slot.device_bytes, "host": slot.host_bytes},
        "session": slot.session,
        "retention": slot.retention.name.lower(),
        "state": slot.state,
    }
