"""What answers look like, for the OpenAPI page. The protocols' writers write them; tests hold both together.

A field that is not required may be left out.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ErrorObject(_Shape):
    """What went wrong. param: the field at fault; code: the case, for programs."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorAnswer(_Shape):
    """Every error, and the last event of a stream that breaks off."""

    error: ErrorObject


class PromptTokensDetails(_Shape):
    cached_tokens: int


class Usage(_Shape):
    """Counts of tokens."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails


class Timings(_Shape):
    """prompt_n: prompt tokens computed for this request, by the engine's counter; cache_n: those that were reused."""

    prompt_n: int
    cache_n: int
    prompt_ms: float
    prompt_per_second: float | None
    predicted_n: int
    predicted_ms: float
    predicted_per_second: float | None
    queue_ms: float
    planning_us: int
    max_tokens: int


class Reuse(_Shape):
    """Where the computation began."""

    source: Literal["root", "device", "host", "disk", "mixed"]
    path: str
    frontier: int


class Accounted(_Shape):
    """What an answer cost."""

    usage: Usage
    timings: Timings
    reuse: Reuse


class PromptProgress(_Shape):
    """How much of the prompt is computed, in tokens. time_ms: since the answer began."""

    total: int
    cache: int
    processed: int
    time_ms: int


class LikelyToken(_Shape):
    """A token, its exact bytes and its log-probability; -9999 stands for minus infinity."""

    id: int
    token: str
    logprob: float
    bytes: list[int]


class TokenLogprobs(LikelyToken):
    top_logprobs: list[LikelyToken]


class ChatLogprobs(_Shape):
    content: list[TokenLogprobs]


class AnswerMessage(_Shape):
    role: Literal["assistant"]
    content: str
    reasoning_content: str | None = None


class ChatChoice(_Shape):
    index: int
    message: AnswerMessage
    logprobs: ChatLogprobs | None
    finish_reason: Literal["stop", "length"]


class Delta(_Shape):
    role: Literal["assistant"] | None = None
    content: str | None = None
    reasoning_content: str | None = None


class ChatChunkChoice(_Shape):
    index: int
    delta: Delta
    logprobs: ChatLogprobs | None
    finish_reason: Literal["stop", "length"] | None


class ChatAnswer(Accounted):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChatChoice]


class ChatChunk(_Shape):
    """An event of a stream. The finishing chunk has a finish reason and what the answer cost."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChatChunkChoice]
    prompt_progress: PromptProgress | None = None
    usage: Usage | None = None
    timings: Timings | None = None
    reuse: Reuse | None = None


class CompletionLogprobs(_Shape):
    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class CompletionChoice(_Shape):
    index: int
    text: str
    logprobs: CompletionLogprobs | None
    finish_reason: Literal["stop", "length"] | None


class CompletionAnswer(Accounted):
    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[CompletionChoice]


class CompletionChunk(_Shape):
    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[CompletionChoice]
    prompt_progress: PromptProgress | None = None
    usage: Usage | None = None
    timings: Timings | None = None
    reuse: Reuse | None = None


class NativeChunk(_Shape):
    index: int
    content: str
    tokens: list[int]
    stop: bool
    id_slot: int
    completion_probabilities: list[TokenLogprobs] | None = None
    prompt_progress: PromptProgress | None = None


class NativeAnswer(Accounted):
    """stop_type: what ended it; stopping_word: the stop string, if it was one."""

    index: int
    content: str
    tokens: list[int]
    stop: Literal[True]
    id_slot: int
    model: str
    stop_type: Literal["eos", "word", "limit"]
    stopping_word: str
    tokens_predicted: int
    tokens_evaluated: int
    tokens_cached: int
    truncated: bool
    completion_probabilities: list[TokenLogprobs] | None = None


class TokenPiece(_Shape):
    """piece: the text of a token, or its bytes where they are a part of a character."""

    id: int
    piece: str | list[int]


class TokenizeAnswer(_Shape):
    tokens: list[int] | list[TokenPiece]


class DetokenizeAnswer(_Shape):
    content: str


class RenderAnswer(_Shape):
    prompt: str


class ModelMeta(_Shape):
    n_ctx_train: int
    n_vocab: int


class ModelAnswer(_Shape):
    """max_model_len: the longest sequence here, in tokens."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    max_model_len: int
    meta: ModelMeta


class ModelListAnswer(_Shape):
    object: Literal["list"]
    data: list[ModelAnswer]


class HealthAnswer(_Shape):
    status: Literal["ok"]


class UnhealthyAnswer(ErrorAnswer):
    status: Literal["loading", "starting", "failed", "stopped"]


class PropsAnswer(_Shape):
    default_generation_settings: dict[str, Any]
    total_slots: int
    model_alias: str
    chat_template: str | None
    bos_token: str | None
    eos_token: str | None
    modalities: dict[str, bool]


# All that an endpoint answers with, or an event of its stream holds.
SHAPES: tuple[type[BaseModel], ...] = (
    ErrorAnswer,
    ChatAnswer,
    ChatChunk,
    CompletionAnswer,
    CompletionChunk,
    NativeAnswer,
    NativeChunk,
    TokenizeAnswer,
    DetokenizeAnswer,
    RenderAnswer,
    ModelAnswer,
    ModelListAnswer,
    HealthAnswer,
    UnhealthyAnswer,
    PropsAnswer,
)
