"""Fields that every generation endpoint has, as clients send them. null means absent."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, FailFast, Field, WithJsonSchema


class FirstError(FailFast):
    """A list with a wrong element is refused at the first one. (Unions need what they join to have a hash.)"""

    def __hash__(self) -> int:
        return hash(self.fail_fast)


MAX_STOPS = 32
MAX_STOP_CHARACTERS = 256
MAX_STOP_TOKEN_IDS = 1024
MAX_BIASES = 4096

StopStrings = Annotated[
    str | Annotated[list[str], FirstError()],
    Field(description=f"At most {MAX_STOPS} strings of at most {MAX_STOP_CHARACTERS} characters."),
]
# Large and shallow: checked element by element where it is read, so that a wrong one costs one error and not a million.
LogitBias = Annotated[
    dict[str, Any],
    WithJsonSchema({"type": "object", "additionalProperties": {"type": "number"}, "maxProperties": MAX_BIASES}),
]
TokenIds = Annotated[list[int], FirstError()]
_IDS_SCHEMA = {"type": "array", "items": {"type": "integer"}}
_PROMPT_SCHEMA = {"anyOf": [{"type": "string"}, _IDS_SCHEMA]}
# A list may also hold one such prompt.
PromptInput = Annotated[
    str | list[Any],
    WithJsonSchema(
        {"anyOf": [{"type": "string"}, _IDS_SCHEMA, {"type": "array", "items": _PROMPT_SCHEMA, "maxItems": 1}]}
    ),
]


class StreamOptions(BaseModel):
    """`include_usage` adds a last chunk without choices that carries the usage."""

    model_config = ConfigDict(strict=True, extra="ignore")

    include_usage: bool | None = None


class GenerationFields(BaseModel):
    """Sampling, ends of the output, and the cache. The ranges are those of SamplingParams; seed -1 means none given."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    model: str | None = None
    stream: bool | None = None
    return_progress: bool | None = None

    seed: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    repeat_penalty: float | None = None
    repeat_last_n: int | None = None
    min_tokens: int | None = None
    stop: StopStrings | None = None
    stop_token_ids: Annotated[TokenIds, Field(max_length=MAX_STOP_TOKEN_IDS)] | None = None
    ignore_eos: bool | None = None
    logit_bias: LogitBias | None = None

    cache_prompt: bool | None = None
    cache_salt: str | None = None
    session_id: str | None = None
    cache_sharing: bool | None = None
