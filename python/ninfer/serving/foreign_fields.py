"""Fields that other servers know and this one has no use for: refused by name where they would change the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from ninfer.serving.http_errors import bad_field

# With the values that change nothing here.
_NEUTRAL_VALUES: Mapping[str, tuple[Any, ...]] = {
    # OpenAI
    "audio": (),
    "function_call": (),
    "functions": ([],),
    "moderation": (),
    "web_search_options": (),
    # llama.cpp
    "adaptive_target": (-1,),
    "dry_multiplier": (0,),
    "dynatemp_range": (0,),
    "echo": (False,),
    "grammar": ("",),
    "image_data": ([],),
    "input_extra": ([],),
    "input_prefix": ("",),
    "input_suffix": ("",),
    "json_schema": (),
    "lora": ([],),
    "min_keep": (0,),
    "mirostat": (0,),
    "multimodal_data": ([],),
    "n": (1,),
    "n_cmpl": (1,),
    "n_indent": (0,),
    "parse_tool_calls": (False,),
    "post_sampling_probs": (False,),
    "reasoning_budget_tokens": (-1,),
    "reasoning_format": ("auto", "deepseek"),
    "response_fields": ([],),
    # The order that the engine has.
    "samplers": (["penalties", "temperature", "top_k", "top_p", "min_p"],),
    "t_max_predict_ms": (-1, 0),
    "top_n_sigma": (-1, 0),
    "typ_p": (1,),
    "typical_p": (1,),
    "xtc_probability": (0,),
}
# They only say something together with a refused one, or how fast an answer is made, or what is done when a context
# moves on, which it never does here.
_WITHOUT_EFFECT = frozenset(
    {
        "adaptive_decay",
        "backend_sampling",
        "dry_allowed_length",
        "dry_base",
        "dry_penalty_last_n",
        "dry_sequence_breakers",
        "dynatemp_exponent",
        "grammar_lazy",
        "grammar_triggers",
        "id_slot",
        "mirostat_eta",
        "mirostat_tau",
        "n_cache_reuse",
        "n_discard",
        "n_keep",
        "preserved_tokens",
        "reasoning_control",
        "sse_ping_interval",
        "timings_per_token",
        "xtc_threshold",
    }
)
FOREIGN_FIELDS = _WITHOUT_EFFECT | _NEUTRAL_VALUES.keys()


def without_foreign_fields(model: type[BaseModel], fields: Mapping[str, Any]) -> dict[str, Any]:
    """`fields` without those that only other servers know; 400 naming one whose value would change the answer."""
    kept = {}
    for name, value in fields.items():
        if name in model.model_fields or name not in FOREIGN_FIELDS:
            kept[name] = value
        elif name in _NEUTRAL_VALUES and value not in _NEUTRAL_VALUES[name]:
            raise bad_field(name, "is not supported")
    return kept
