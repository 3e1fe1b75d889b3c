"""A checked request in the form that all protocols share; it never holds anything of a protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from ninfer.engine.sampling_params import SamplingParams
from ninfer.serving.http_errors import ApiError
from ninfer.serving.wire import GenerationFields

SESSION_HEADER = "x-session-id"


@dataclass(frozen=True)
class CacheHints:
    """What the client says about reuse. use: whether the prompt cache may serve and keep this request at all."""

    use: bool = True
    salt: str | None = None
    session_id: str | None = None
    sharing: bool | None = None


@dataclass(frozen=True)
class GenerationRequest:
    """prompt: token ids. opens_reasoning: the prompt ends inside a reasoning block. model_name: as answers show it."""

    prompt: list[int]
    params: SamplingParams
    model_name: str
    stream: bool = False
    include_usage: bool = False
    report_progress: bool = False
    opens_reasoning: bool = False
    cache: CacheHints = CacheHints()

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
    session = fields.session_id if fields.session_id is not None else headers.get(SESSION_HEADER)
    return CacheHints(fields.cache_prompt is not False, fields.cache_salt, session, fields.cache_sharing)
