"""Bodies of the OpenAI protocol, as clients send them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ninfer.serving.wire import FirstError, GenerationFields, PromptInput, StreamOptions

MAX_MESSAGES = 16_384
_OPEN = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)


class ContentPart(BaseModel):
    """One part of a message; only text is understood."""

    model_config = _OPEN

    type: str
    text: str | None = None


class FunctionCall(BaseModel):
    """`arguments` is a JSON string in the protocol; an object is taken as well."""

    model_config = _OPEN

    name: str
    arguments: str | dict[str, Any] | None = None


class ToolCall(BaseModel):
    """A call that the model made in an earlier turn."""

    model_config = _OPEN

    id: str | None = None
    type: Literal["function"] | None = None
    function: FunctionCall


class ChatMessage(BaseModel):
    """One message of a conversation. Further fields reach the chat template."""

    model_config = _OPEN

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | Annotated[list[ContentPart], FirstError()] | None = None
    reasoning_content: str | None = None
    tool_calls: Annotated[list[ToolCall], FirstError()] | None = None
    tool_call_id: str | None = None
    name: str | None = None


class FunctionDefinition(BaseModel):
    """What a tool is called, and a JSON schema of its arguments."""

    model_config = _OPEN

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class Tool(BaseModel):
    """A function that the model may call."""

    model_config = _OPEN

    type: Literal["function"]
    function: FunctionDefinition


class ResponseFormat(BaseModel):
    """Only `text` can be served."""

    model_config = _OPEN

    type: str


class OpenAiFields(GenerationFields):
    """What both completion endpoints share. Fields without effect here are accepted, since clients send them."""

    n: int | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    stream_options: StreamOptions | None = None
    user: str | None = None
    metadata: dict[str, Any] | None = None
    service_tier: str | None = None


class RenderFields(BaseModel):
    """What a chat template sees: the part of a chat request that decides the prompt."""

    model_config = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False)

    messages: Annotated[list[ChatMessage], FirstError(), Field(max_length=MAX_MESSAGES)]
    tools: Annotated[list[Tool], FirstError()] | None = None
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    enable_thinking: bool | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None


class ChatBody(OpenAiFields, RenderFields):
    """Body of POST /v1/chat/completions."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    response_format: ResponseFormat | None = None
    parallel_tool_calls: bool | None = None
    modalities: list[Literal["text"]] | None = None
    store: bool | None = None
    verbosity: str | None = None
    prediction: dict[str, Any] | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: dict[str, Any] | None = None
    prompt_cache_retention: str | None = None
    safety_identifier: str | None = None


class CompletionBody(OpenAiFields):
    """Body of POST /v1/completions: a text, or the ids of its tokens."""

    prompt: PromptInput | None = None
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    echo: bool | None = None
    suffix: str | None = None
    best_of: int | None = None
