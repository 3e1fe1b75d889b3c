"""Builds a tokenizer from the metadata of a GGUF file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, decoders, models, processors

from ninfer.errors import ModelFileError
from ninfer.frontend.gguf_pre_tokenizers import PRE_TOKENIZERS, GgufPreTokenizer
from ninfer.frontend.tokenizer_parts import TokenizerParts
from ninfer.weights.end_tokens import gguf_end_tokens

_PREFIX = "tokenizer.ggml."
_UNKNOWN, _CONTROL, _USER_DEFINED = 2, 3, 4
_NAMES = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
# Converters often store only one end token although a chat ends its turns with another.
_END_TEXTS = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|endoftext|>")


def gguf_tokenizer_parts(metadata: Mapping[str, Any], file: str | Path) -> TokenizerParts:
    """The parts of the tokenizer that `metadata` describe; ModelFileError names the key that does not fit."""
    reader = _Metadata(metadata, file)
    reader.one_of("model", ("gpt2",))
    pre_tokenizer = PRE_TOKENIZERS[reader.one_of("pre", tuple(PRE_TOKENIZERS))]
    tokens = reader.strings("tokens")
    backend = _bpe_backend(reader, tokens, pre_tokenizer)
    _add_tokens(reader, backend, tokens)
    named_tokens = {}
    for name, key in _NAMES.items():
        token_id = reader.token_id(f"{key}_token_id", len(tokens))
        if token_id is not None:
            named_tokens[name] = tokens[token_id]
    _set_post_processor(reader, backend, named_tokens, pre_tokenizer)
    return TokenizerParts(backend, named_tokens, _eos_ids(gguf_end_tokens(metadata, Path(file), len(tokens)), backend))


class _Metadata:
    """Typed access to the tokenizer keys of GGUF metadata."""

    def __init__(self, values: Mapping[str, Any], file: str | Path) -> None:
        self._values = values
        self._file = file

    def error(self, key: str, expected: object, found: object) -> ModelFileError:
        return ModelFileError(self._file, _PREFIX + key, expected, found)

    def get(self, key: str) -> Any:
        return self._values.get(_PREFIX + key)

    def one_of(self, key: str, allowed: tuple[str, ...]) -> str:
        value = self.get(key)
        if value not in allowed:
            raise self.error(key, "one of " + ", ".join(allowed), "nothing" if value is None else value)
        return str(value)

    def strings(self, key: str) -> Sequence[str]:
        value = self.get(key)
        if not isinstance(value, (list, tuple)) or not value or not all(isinstance(item, str) for item in value):
            raise self.error(key, "a list of strings", "nothing" if value is None else type(value).__name__)
        return value

    def token_types(self, count: int) -> Sequence[int]:
        value = self.get("token_type")
        if value is None:
            return [1] * count
        if not isinstance(value, (list, tuple)) or len(value) != count or not all(type(item) is int for item in value):
            raise self.error("token_type", f"{count} integers", str(value)[:80])
        return value

    def token_id(self, key: str, count: int) -> int | None:
        value = self.get(key)
        if value is None:
            return None
        if type(value) is not int or not 0 <= value < count:
            raise self.error(key, f"a token id below {count}", value)
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self.get(key)
        return default if value is None else bool(value)


def _bpe_backend(reader: _Metadata, tokens: Sequence[str], pre_tokenizer: GgufPreTokenizer) -> tokenizers.Tokenizer:
    vocabulary = {token: token_id for token_id, token in enumerate(tokens)}
    if len(vocabulary) != len(tokens):
        raise reader.error("tokens", f"{len(tokens)} distinct tokens", len(vocabulary))
    merges = [_halves(merge) for merge in reader.strings("merges")]
    for left, right in merges:
        if left not in vocabulary or right not in vocabulary or left + right not in vocabulary:
            raise reader.error("merges", "pairs of tokens that join into a token", f"{left!r} {right!r}")
    model = models.BPE(vocab=vocabulary, merges=merges, ignore_merges=pre_tokenizer.whole_words_first)
    backend = tokenizers.Tokenizer(model)
    if pre_tokenizer.normalizer is not None:
        backend.normalizer = pre_tokenizer.normalizer()
    backend.pre_tokenizer = pre_tokenizer.splitter()
    backend.decoder = decoders.ByteLevel()
    return backend


def _halves(merge: str) -> tuple[str, str]:
    """The two tokens of a merge; its first character belongs to the left one even if it is a space."""
    left, _, right = merge[1:].partition(" ")
    return merge[:1] + left, right


def _add_tokens(reader: _Metadata, backend: tokenizers.Tokenizer, tokens: Sequence[str]) -> None:
    """Control and unknown tokens are special; user-defined ones are text with an id of their own."""
    added = [
        AddedToken(token, special=kind != _USER_DEFINED, normalized=False)
        for token, kind in zip(tokens, reader.token_types(len(tokens)), strict=True)
        if kind in (_UNKNOWN, _CONTROL, _USER_DEFINED) and token
    ]
    backend.add_tokens(added)


def _set_post_processor(
    reader: _Metadata,
    backend: tokenizers.Tokenizer,
    named_tokens: Mapping[str, str],
    pre_tokenizer: GgufPreTokenizer,
) -> None:
    bos = named_tokens.get("bos_token") if reader.flag("add_bos_token", pre_tokenizer.adds_bos) else None
    eos = named_tokens.get("eos_token") if reader.flag("add_eos_token", False) else None
    pieces = [*([bos] if bos else []), "$A", *([eos] if eos else [])]
    named = [(token, backend.token_to_id(token)) for token in dict.fromkeys((bos, eos)) if token]
    backend.post_processor = processors.TemplateProcessing(single=pieces, pair=None, special_tokens=named)


def _eos_ids(stated: tuple[int, ...], backend: tokenizers.Tokenizer) -> frozenset[int]:
    special = {token.content for token in backend.get_added_tokens_decoder().values() if token.special}
    implied = [backend.token_to_id(text) for text in _END_TEXTS if text in special]
    return frozenset(token_id for token_id in (*stated, *implied) if token_id is not None)
