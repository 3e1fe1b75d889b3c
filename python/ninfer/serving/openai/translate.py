"""Bodies of the OpenAI protocol into requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ninfer.frontend.reasoning_parser import prompt_opens_reasoning
from ninfer.serving.decode import checked, decode_object, without_nulls
from ninfer.serving.foreign_fields import without_foreign_fields
from ninfer.serving.generation_request import GenerationRequest, cache_hints, served_name
from ninfer.serving.http_errors import bad_field
from ninfer.serving.openai.chat_prompt import chat_prompt
from ninfer.serving.openai.wire import ChatBody, CompletionBody, OpenAiFields
from ninfer.serving.prompt_ids import prompt_ids
from ninfer.serving.sampling import sampling_of
from ninfer.serving.served_model import ServedModel
from ninfer.serving.serving_options import ServingOptions


def chat_request(
    body: bytes, headers: Mapping[str, str], model: ServedModel, options: ServingOptions
) -> GenerationRequest:
    """Decodes, checks, renders and tokenises; raises ApiError or RequestError naming the field."""
    raw = without_foreign_fields(ChatBody, without_nulls(decode_object(body)))
    fields = checked(ChatBody, raw)
    name = served_name(fields.model, options.served_model_names)
    _refuse_unsupported(fields)
    if fields.response_format is not None and fields.response_format.type != "text":
        raise bad_field("response_format", "only the type text is supported")
    max_tokens = fields.max_tokens if fields.max_completion_tokens is None else fields.max_completion_tokens
    params = sampling_of(fields, model.default_sampling, max_tokens=max_tokens, logprobs=_chat_logprobs(fields))
    encoded = model.frontend.encode_chat(
        chat_prompt(fields, raw),
        parse_special_in_content=options.parse_special_in_content,
        most_tokens=model.max_context,
    )
    return GenerationRequest(
        prompt=model.token_prompt(encoded.token_ids),
        params=params,
        model_name=name,
        **_delivery(fields),
        opens_reasoning=prompt_opens_reasoning(encoded.text),
        cache=cache_hints(fields, headers),
        boundaries=encoded.boundaries,
    )


def completion_request(
    body: bytes, headers: Mapping[str, str], model: ServedModel, options: ServingOptions
) -> GenerationRequest:
    """As `chat_request`, for a raw prompt."""
    raw = without_foreign_fields(CompletionBody, without_nulls(decode_object(body)))
    fields = checked(CompletionBody, raw)
    name = served_name(fields.model, options.served_model_names)
    _refuse_unsupported(fields)
    if fields.best_of not in (None, 1):
        raise bad_field("best_of", "only 1 is supported")
    if fields.echo:
        raise bad_field("echo", "is not supported")
    if fields.suffix:
        raise bad_field("suffix", "is not supported")
    params = sampling_of(fields, model.default_sampling, max_tokens=fields.max_tokens, logprobs=fields.logprobs)
    return GenerationRequest(
        prompt=prompt_ids(fields.prompt, model),
        params=params,
        model_name=name,
        **_delivery(fields),
        cache=cache_hints(fields, headers),
    )


def _refuse_unsupported(fields: OpenAiFields) -> None:
    if fields.n not in (None, 1):
        raise bad_field("n", "only 1 is supported")
    if fields.stream_options is not None and not fields.stream:
        raise bad_field("stream_options", "is only allowed with stream")


def _delivery(fields: OpenAiFields) -> dict[str, Any]:
    options = fields.stream_options
    return {
        "stream": fields.stream is True,
        "include_usage": options is not None and options.include_usage is True,
        "report_progress": fields.return_progress is True,
    }


def _chat_logprobs(fields: ChatBody) -> int | None:
    if fields.logprobs:
        return fields.top_logprobs or 0
    if fields.top_logprobs is not None:
        raise bad_field("top_logprobs", "is only allowed with logprobs")
    return None
