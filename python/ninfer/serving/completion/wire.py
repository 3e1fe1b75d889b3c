"""Body of POST /completion, as clients of llama.cpp's server send it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, WithJsonSchema

from ninfer.serving.wire import GenerationFields, PromptInput

# llama.cpp takes an object, or a list of pairs in which a token may also be a text and false stands for never.
BiasInput = Annotated[dict[str, Any] | list[Any], WithJsonSchema({"type": ["object", "array"]})]


class NativeCompletionBody(GenerationFields):
    """Unknown fields are ignored, as that server does. n_predict: -1 means none given. Some have several names."""

    model_config = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False)

    prompt: PromptInput | None = None
    n_predict: Annotated[int, Field(ge=-1)] | None = None
    max_tokens: Annotated[int, Field(ge=-1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=-1)] | None = None
    n_probs: Annotated[int, Field(ge=0, le=20)] | None = None
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    logit_bias: BiasInput | None = None  # type: ignore[assignment]  # wider than the shared field
