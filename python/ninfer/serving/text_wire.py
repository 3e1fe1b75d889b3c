"""Bodies of the endpoints that turn text into tokens and back."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from ninfer.serving.wire import TokenIds

MAX_TEXT_TOKENS = 1 << 20

_OPEN = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False)


class TokenizeBody(BaseModel):
    """add_special: with the tokens around a text; parse_special: special tokens in the text become control tokens."""

    model_config = _OPEN

    content: str
    add_special: bool | None = None
    parse_special: bool | None = None
    with_pieces: bool | None = None


class DetokenizeBody(BaseModel):
    """Token ids, in order."""

    model_config = _OPEN

    tokens: Annotated[TokenIds, Field(max_length=MAX_TEXT_TOKENS)]
