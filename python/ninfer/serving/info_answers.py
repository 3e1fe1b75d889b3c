"""What the endpoints that generate nothing answer with, for the OpenAPI page; see answers.py."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import RootModel

from ninfer.serving.answer_shape import AnswerShape, ErrorAnswer


class TokenPiece(AnswerShape):
    """piece: the text of a token, or its bytes where they are a part of a character."""

    id: int
    piece: str | list[int]


class TokenizeAnswer(AnswerShape):
    tokens: list[int] | list[TokenPiece]


class DetokenizeAnswer(AnswerShape):
    content: str


class RenderAnswer(AnswerShape):
    prompt: str


class ModelMeta(AnswerShape):
    n_ctx_train: int
    n_vocab: int


class ModelAnswer(AnswerShape):
    """max_model_len: the longest sequence here, in tokens."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    max_model_len: int
    meta: ModelMeta


class ModelListAnswer(AnswerShape):
    object: Literal["list"]
    data: list[ModelAnswer]


class HealthAnswer(AnswerShape):
    status: Literal["ok"]


class UnhealthyAnswer(ErrorAnswer):
    status: Literal["loading", "starting", "failed", "stopped"]


class PropsAnswer(AnswerShape):
    default_generation_settings: dict[str, Any]
    total_slots: int
    model_alias: str
    chat_template: str | None
    bos_token: str | None
    eos_token: str | None
    modalities: dict[str, bool]


class SlotBytes(AnswerShape):
    """What several cells share counts in each of them."""

    device: int
    host: int


class SlotAnswer(AnswerShape):
    """A conversation that is kept. n_tokens: up to its deepest checkpoint; session: the name that continues it."""

    id: int
    n_tokens: int
    checkpoints: list[
        Literal["session_endpoint", "turn_closure", "response_replay", "long_anchor", "shared_stable_prefix"]
    ]
    bytes: SlotBytes
    session: str | None
    retention: Literal["disposable", "recent_private", "live_session"]
    state: Literal["idle", "claimed", "active"]


class SlotListAnswer(RootModel[list[SlotAnswer]]):
    """The cells that hold something, by their ids."""
