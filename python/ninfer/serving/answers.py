"""What answers look like, for the OpenAPI page. The protocols' writers write them; tests hold both together.

A field that is not required may be left out.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from ninfer.serving.answer_shape import AnswerShape, ErrorAnswer
from ninfer.serving.info_answers import (
    DetokenizeAnswer,
    HealthAnswer,
    ModelAnswer,
    ModelListAnswer,
    PropsAnswer,
    RenderAnswer,
    SlotListAnswer,
    TokenizeAnswer,
    UnhealthyAnswer,
)


class PromptTokensDetails(AnswerShape):
    cached_tokens: int


class Usage(AnswerShape):
    """Counts of tokens."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails


class Timings(AnswerShape):
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


class ReuseDivergence(AnswerShape):
    """The first token of the prompt that differs from what is kept, and the message that it stands in."""

    token: int
    message: int | None


class Reuse(AnswerShape):
    """Where the computation began: where the checkpoint's bytes lay, its kind, and how many tokens it saved.

    shared_tokens: so many tokens of the prompt are the beginning of something that is kept, if those are more than
    were reused. divergence: where that ends. reason: why it did not serve.
    """

    source: Literal["root", "device", "host", "disk", "mixed"]
    path: Literal["root", "session_endpoint", "turn_closure", "response_replay", "long_anchor", "shared_stable_prefix"]
    frontier: int
    shared_tokens: int | None = None
    divergence: ReuseDivergence | None = None
    reason: (
        Literal[
            "no_match",
            "evicted",
            "no_checkpoint",
            "rewritten_history",
            "salt",
            "disabled",
            "pressure_refused",
        ]
        | None
    ) = None


class Accounted(AnswerShape):
    """What an answer cost."""

    usage: Usage
    timings: Timings
    reuse: Reuse


class PromptProgress(AnswerShape):
    """How much of the prompt is computed, in tokens. time_ms: since the answer began."""

    total: int
    cache: int
    processed: int
    time_ms: int


class LikelyToken(AnswerShape):
    """A token, its exact bytes and its log-probability; -9999 stands for minus infinity."""

    id: int
    token: str
    logprob: float
    bytes: list[int]


class TokenLogprobs(LikelyToken):
    top_logprobs: list[LikelyToken]


class ChatLogprobs(AnswerShape):
    content: list[TokenLogprobs]


class AnswerMessage(AnswerShape):
    role: Literal["assistant"]
    content: str
    reasoning_content: str | None = None


class ChatChoice(AnswerShape):
    index: int
    message: AnswerMessage
    logprobs: ChatLogprobs | None
    finish_reason: Literal["stop", "length"]


class Delta(AnswerShape):
    role: Literal["assistant"] | None = None
    content: str | None = None
    reasoning_content: str | None = None


class ChatChunkChoice(AnswerShape):
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


class ChatChunk(AnswerShape):
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


class CompletionLogprobs(AnswerShape):
    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class CompletionChoice(AnswerShape):
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


class CompletionChunk(AnswerShape):
    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[CompletionChoice]
    prompt_progress: PromptProgress | None = None
    usage: Usage | None = None
    timings: Timings | None = None
    reuse: Reuse | None = None


class NativeChunk(AnswerShape):
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
    SlotListAnswer,
)
