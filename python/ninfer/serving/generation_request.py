"""A checked request in the form that all protocols share; it never holds anything of a protocol."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import numpy as np

from ninfer.engine.request import CacheHints
from ninfer.engine.sampling_params import SamplingParams
from ninfer.frontend.prompt_boundaries import RAW_PROMPT, PromptBoundaries
from ninfer.serving.http_errors import ApiError, bad_field
from ninfer.serving.wire import GenerationFields

SESSION_HEADER = "x-session-id"
MAX_NAME_CHARACTERS = 256
DIGEST_CHARACTERS = 16


@dataclass(frozen=True)
class PromptDigest:
    """tokens: how many. sha256: the first 16 hex digits of the SHA-256 of the ids as little-endian 32-bit integers."""

    tokens: int
    sha256: str

    @classmethod
    def of(cls, token_ids: Sequence[int]) -> PromptDigest:
        whole = hashlib.sha256(np.asarray(token_ids, "<u4").tobytes()).hexdigest()
        return cls(len(token_ids), whole[:DIGEST_CHARACTERS])


@dataclass(frozen=True)
class GenerationRequest:
    """prompt: token ids, until the engine has them; then there is a digest in their place. model_name: as answers show
    it. opens_reasoning: the prompt ends inside a reasoning block. boundaries: of the prompt."""

    prompt: list[int]
    params: SamplingParams
    model_name: str
    stream: bool = False
    include_usage: bool = False
    report_progress: bool = False
    opens_reasoning: bool = False
    cache: CacheHints = field(default_factory=CacheHints)
    boundaries: PromptBoundaries = RAW_PROMPT
    digest: PromptDigest | None = None

    def submitted(self) -> GenerationRequest:
        """What stays of it."""
        return replace(self, prompt=[], boundaries=RAW_PROMPT, digest=PromptDigest.of(self.prompt))

    def ends_with(self, token_id: int, eos_ids: Set[int]) -> bool:
        """Whether this token ends the output and is no part of it."""
        return token_id in self.params.stop_token_ids or (not self.params.ignore_eos and token_id in eos_ids)


def served_name(wanted: str | None, served: Sequence[str]) -> str:
    """The name to answer with; 404 for a model that is not served here."""
    if wanted is None:
        return served[0]
    if wanted not in served:
        message = f"the model {wanted[:200]!r} is not served here; served is {', '.join(served)}"
        raise ApiError(404, message, param="model", code="model_not_found")
    return wanted


def cache_hints(fields: GenerationFields, headers: Mapping[str, str]) -> CacheHints:
    """The body outranks the header."""
    if fields.session_id is not None:
        session = _name("session_id", fields.session_id)
    else:
        session = _name(SESSION_HEADER, headers.get(SESSION_HEADER))
    salt = _name("cache_salt", fields.cache_salt)
    if fields.cache_sharing and salt is None:
        raise bad_field("cache_sharing", "is only allowed with cache_salt")
    return CacheHints(fields.cache_prompt is not False, salt, session, fields.cache_sharing)


def _name(field: str, value: str | None) -> str | None:
    if value is not None and not 1 <= len(value) <= MAX_NAME_CHARACTERS:
        raise bad_field(field, f"expected 1 to {MAX_NAME_CHARACTERS} characters, found {len(value)}")
    return value
