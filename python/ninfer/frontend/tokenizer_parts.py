"""What a tokenizer is made of once its files were read, whichever format they came in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import tokenizers


@dataclass(frozen=True)
class TokenizerParts:
    """A configured backend and the tokens that have names.

    backend: byte-level BPE without truncation or padding; its post-processor adds what `add_special` asks for.
    named_tokens: text by name as chat templates see it (`bos_token`, `eos_token`, `pad_token`, ...).
    eos_ids: every id after which the model has said all it wanted to say.
    """

    backend: tokenizers.Tokenizer
    named_tokens: Mapping[str, str]
    eos_ids: frozenset[int]
