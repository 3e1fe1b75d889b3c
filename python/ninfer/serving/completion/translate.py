"""Bodies of llama.cpp's completion endpoint into requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ninfer.serving.completion.wire import NativeCompletionBody
from ninfer.serving.decode import checked, decode_object, without_nulls
from ninfer.serving.foreign_fields import without_foreign_fields
from ninfer.serving.generation_request import GenerationRequest, cache_hints, served_name
from ninfer.serving.http_errors import bad_field
from ninfer.serving.prompt_ids import prompt_ids
from ninfer.serving.sampling import sampling_of
from ninfer.serving.served_model import ServedModel
from ninfer.serving.serving_options import ServingOptions
from ninfer.serving.wire import MAX_BIASES

# Names of the longest output; the first that is there counts.
_LIMITS = ("n_predict", "max_tokens", "max_completion_tokens")


def native_completion_request(
    body: bytes, headers: Mapping[str, str], model: ServedModel, options: ServingOptions
) -> GenerationRequest:
    """Decodes, checks and tokenises; raises ApiError or RequestError naming the field."""
    raw = without_foreign_fields(NativeCompletionBody, without_nulls(decode_object(body)))
    fields = checked(NativeCompletionBody, {**raw, "logit_bias": _bias_object(raw.get("logit_bias"))})
    name = served_name(fields.model, options.served_model_names)
    name_of_limit = next((name for name in _LIMITS if getattr(fields, name) is not None), _LIMITS[0])
    limit = getattr(fields, name_of_limit)
    if limit == 0:
        raise bad_field(name_of_limit, "expected -1 or at least 1, found 0")
    params = sampling_of(
        fields,
        model.default_sampling,
        max_tokens=None if limit == -1 else limit,
        logprobs=fields.n_probs or fields.logprobs or None,
    )
    return GenerationRequest(
        prompt=prompt_ids(fields.prompt, model),
        params=params,
        model_name=name,
        stream=fields.stream is True,
        report_progress=fields.return_progress is True,
        cache=cache_hints(fields, headers),
    )


def _bias_object(given: Any) -> Any:
    """Pairs as an object, false as minus infinity's stand-in; what is neither is left for the check to refuse."""
    if not isinstance(given, list):
        return given
    if len(given) > MAX_BIASES:
        raise bad_field("logit_bias", f"at most {MAX_BIASES} pairs, found {len(given)}")
    biases = {}
    for pair in given:
        if not isinstance(pair, list) or len(pair) != 2 or isinstance(pair[0], bool) or not isinstance(pair[0], int):
            raise bad_field("logit_bias", "expected pairs of a token id and a number")
        biases[str(pair[0])] = -1e30 if pair[1] is False else pair[1]
    return biases
