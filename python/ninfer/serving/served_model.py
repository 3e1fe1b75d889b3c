"""What the protocols know about the model that is served."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ninfer.engine.loaded_model import LoadedModel
from ninfer.engine.model_frontend import ModelFrontend
from ninfer.engine.sampling_params import SamplingParams, default_sampling
from ninfer.errors import RequestError

# A multiple of what ordinary text has. Tokenising takes some hundred bytes for each byte of the most unusual one.
_TEXT_BYTES_PER_TOKEN = 8
_LEAST_TEXT_BYTES = 1 << 20


@dataclass(frozen=True)
class ServedModel:
    """Immutable, and usable from several threads at once.

    max_context: longest sequence here, in tokens; trained_context: the model's own. vocab_size: rows of the embedding.
    """

    frontend: ModelFrontend
    default_sampling: SamplingParams
    max_context: int
    trained_context: int
    vocab_size: int
    max_concurrency: int
    default_max_tokens: int

    @classmethod
    def of(cls, model: LoadedModel) -> ServedModel:
        return cls(
            frontend=model.frontend,
            default_sampling=default_sampling(model.files.generation),
            max_context=model.capacity.max_context,
            trained_context=model.files.config.max_context,
            vocab_size=model.files.config.vocab_size,
            max_concurrency=model.capacity.max_concurrency,
            default_max_tokens=model.options.default_max_tokens,
        )

    @property
    def most_text_bytes(self) -> int:
        """The largest text that is tokenised for its own sake, in UTF-8."""
        return max(_LEAST_TEXT_BYTES, self.max_context * _TEXT_BYTES_PER_TOKEN)

    def text_prompt(self, text: str) -> list[int]:
        """Token ids of a raw prompt, with the tokens that the model expects around a text.

        RequestError for a text that cannot fit the context, if that shows before it is tokenised.
        """
        self.frontend.check_length(text, self.max_context)
        return self.token_prompt(self.frontend.tokenizer.encode(text, add_special=True, parse_special=True))

    def token_prompt(self, token_ids: Sequence[int]) -> list[int]:
        """An empty prompt becomes the BOS token; RequestError if the model has none, for an id that is no token, or for
        more ids than the context holds."""
        tokenizer = self.frontend.tokenizer
        self.check_length(token_ids)
        if not token_ids:
            if tokenizer.bos_id is None:
                raise RequestError("prompt", "an empty prompt, and the model has no token that begins a text")
            return [tokenizer.bos_id]
        for token in token_ids:
            if not tokenizer.has_token(token):
                raise RequestError("prompt", f"{token} is no token id of this model")
        return list(token_ids)

    def check_length(self, token_ids: Sequence[object]) -> None:
        """RequestError for more ids than the context holds."""
        if len(token_ids) > self.max_context:
            raise RequestError("prompt", f"{len(token_ids)} tokens, the context holds {self.max_context}")
