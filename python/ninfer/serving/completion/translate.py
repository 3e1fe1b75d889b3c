"""Bodies of llama.cpp's completion endpoint into requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ninfer.serving.completion.wire import NativeCompletionBody
from ninfer.serving.decode import checked, decode_object, without_nulls
from ninfer.serving.generation_request import GenerationRequest, cache_hints, served_name
from ninfer.serving.http_errors import bad_field
from ninfer.serving.openai.translate import prompt_ids
from ninfer.serving.sampling import sampling_of
from ninfer.serving.served_model import ServedModel
from ninfer.serving.serving_options import ServingOptions

# Fields of that server that would change the answer, with the values that do not.
_WITHOUT_EFFECT: Mapping[str, tuple[Any, ...]] = {
    "grammar": ("",),
    "json_schema": (),
    "image_data": ([],),
    "multimodal_data": ([],),
    "input_prefix": ("",),
    "input_suffix": ("",),
    "input_extra": ([],),
    "lora": ([],),
    "mirostat": (0,),
    "typical_p": (1,),
    "dry_multiplier": (0,),
    "xtc_probability": (0,),
    "dynatemp_range": (0,),
    "n_indent": (0,),
    "n_cmpl": (1,),
    "n": (1,),
}


def native_completion_request(
    body: bytes, headers: Mapping[str, str], model: ServedModel, options: ServingOptions
) -> GenerationRequest:
    """Decodes, checks and tokenises; raises ApiError or RequestError naming the field."""
    raw = without_nulls(decode_object(body))
    fields = checked(NativeCompletionBody, {**raw, "logit_bias": _bias_object(raw.get("logit_bias"))})
    name = served_name(fields.model, options.served_model_names)
    for field, harmless in _WITHOUT_EFFECT.items():
        if field in raw and raw[field] not in harmless:
            raise bad_field(field, "is not supported")
    limit = fields.max_tokens if fields.n_predict is None else fields.n_predict
    if limit == 0:
        raise bad_field("n_predict", "expected -1 or at least 1, found 0")
    given = fields.model_copy(update={"seed": None if fields.seed == -1 else fields.seed})
    params = sampling_of(
        given,
        model.default_sampling,
        max_tokens=None if limit == -1 else limit,
        logprobs=fields.n_probs or None,
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
    biases = {}
    for pair in given:
        if not isinstance(pair, list) or len(pair) != 2 or isinstance(pair[0], bool) or not isinstance(pair[0], int):
            raise bad_field("logit_bias", "expected pairs of a token id and a number")
        biases[str(pair[0])] = -1e30 if pair[1] is False else pair[1]
    return biases
