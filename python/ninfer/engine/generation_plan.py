"""A request checked against the model: everything about it that could be refused is refused here."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ninfer.engine.capacity import PAGE_TOKENS
from ninfer.engine.loaded_model import LoadedModel
from ninfer.engine.sampling_params import SamplingParams, check_token_ids
from ninfer.errors import RequestError


@dataclass(frozen=True)
class GenerationPlan:
    """A checked request: its tokens exist and fit the context.

    end_ids end the output; never_ids are no tokens of the vocabulary and are never picked.
    """

    prompt: list[int]
    params: SamplingParams
    max_tokens: int
    end_ids: frozenset[int]
    never_ids: frozenset[int]
    chunk: int

    @property
    def reserved_tokens(self) -> int:
        """Tokens the sequence must have room for: the prompt and the longest output."""
        return len(self.prompt) + self.max_tokens


def plan_generation(model: LoadedModel, prompt: Sequence[int], params: SamplingParams) -> GenerationPlan:
    """Fills in the seed and the output limit, lowered to what the context holds. Raises RequestError."""
    tokenizer = model.frontend.tokenizer
    ids = whole_numbers(prompt)
    check_prompt(model, ids, tokenizer.has_token)
    check_token_ids(params, model.files.config.vocab_size, tokenizer.has_token)
    room = model.capacity.max_context - len(ids)
    if room < 1:
        raise RequestError("prompt", f"{len(ids)} tokens fill the context of {model.capacity.max_context}")
    wanted = model.options.default_max_tokens if params.max_tokens is None else params.max_tokens
    if wanted < 1:
        raise RequestError("max_tokens", f"expected at least 1, found {wanted}")
    end_ids = frozenset(params.stop_token_ids)
    if not params.ignore_eos:
        end_ids |= tokenizer.eos_ids
    plan = GenerationPlan(ids, params.seeded(), min(wanted, room), end_ids, tokenizer.missing_ids, model.prefill_chunk)
    most = model.capacity.kv_pages * PAGE_TOKENS
    if plan.reserved_tokens > most:
        raise RequestError("prompt", f"prompt and output need {plan.reserved_tokens} tokens, all pages hold {most}")
    return plan


def check_prompt(model: LoadedModel, ids: list[int], is_token: Callable[[int], bool]) -> None:
    """Raises RequestError for an empty prompt, an id that is no token, or more tokens than the context holds."""
    if not ids:
        raise RequestError("prompt", "an empty prompt; give at least one token")
    for token in dict.fromkeys(ids):  # each id once: a long prompt repeats most of them
        if not is_token(token):
            raise RequestError("prompt", f"{token} is no token id of this model")
    most = model.capacity.max_context
    if len(ids) > most:
        raise RequestError("prompt", f"{len(ids)} tokens, the context holds {most}")


def whole_numbers(prompt: Sequence[int]) -> list[int]:
    """Token ids as plain ints; RequestError for text or anything that is no whole number."""
    if isinstance(prompt, (str, bytes)):
        raise RequestError("prompt", f"expected token ids, found {type(prompt).__name__}")
    try:
        return list(map(operator.index, prompt))
    except TypeError as error:
        raise RequestError("prompt", f"expected token ids: {error}") from error
