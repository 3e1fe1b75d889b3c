"""Reads a tokenizer from a Hugging Face model directory, with the meaning `transformers` gives its files.

Whether a text begins with BOS is what the post-processor in tokenizer.json says; `add_bos_token` in the configuration
belongs to tokenizers without that file and is ignored, as `transformers` 5 does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, decoders

from ninfer.config.json_file import read_optional_json_object
from ninfer.errors import ModelFileError
from ninfer.frontend.tokenizer_parts import TokenizerParts
from ninfer.weights.end_tokens import directory_end_tokens

_NAMED_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
_TOKEN_FLAGS = ("single_word", "lstrip", "rstrip", "normalized")


def hf_tokenizer_parts(directory: Path) -> TokenizerParts:
    """The parts of the tokenizer in `directory`; ModelFileError names the file and key that do not fit."""
    config_file = directory / "tokenizer_config.json"
    config = read_optional_json_object(directory / "special_tokens_map.json")
    config |= read_optional_json_object(config_file)
    backend = _backend(directory / "tokenizer.json")
    tokens = {name: _token(config.get(name), name, config_file) for name in _NAMED_TOKENS}
    named = {name: token for name, token in tokens.items() if token is not None}
    _add_missing_tokens(backend, config, named, config_file)
    named_tokens = {name: token.content for name, token in named.items()}
    return TokenizerParts(backend, named_tokens, _eos_ids(directory, backend, named_tokens))


def _backend(file: Path) -> tokenizers.Tokenizer:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ModelFileError(file, "(whole file)", "a tokenizer of the tokenizers library", error) from error
    try:
        backend = tokenizers.Tokenizer.from_str(text)
    except Exception as error:  # the library raises bare Exception for every damage
        raise ModelFileError(file, "(whole file)", "a tokenizer of the tokenizers library", error) from error
    kind = type(backend.model).__name__
    if kind != "BPE":
        raise ModelFileError(file, "model.type", "BPE", kind)
    if not isinstance(backend.decoder, decoders.ByteLevel):
        raise ModelFileError(file, "decoder.type", "ByteLevel", type(backend.decoder).__name__)
    backend.no_truncation()
    backend.no_padding()
    return backend


def _token(value: object, key: str, file: Path) -> AddedToken | None:
    """A token as the configuration writes it: its text, or an object with its text and flags."""
    if value is None:
        return None
    content = value.get("content") if isinstance(value, dict) else value
    if not isinstance(content, str) or not _is_unicode(content):
        raise ModelFileError(file, key, "a string or an object with 'content'", repr(value)[:100])
    if not isinstance(value, dict):
        return AddedToken(content, special=True, normalized=False)
    flags = {flag: bool(value.get(flag, False)) for flag in _TOKEN_FLAGS}
    return AddedToken(content, special=bool(value.get("special", True)), **flags)


def _is_unicode(text: str) -> bool:
    """JSON can spell half of a surrogate pair, which no tokenizer takes."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _configured_tokens(config: Mapping[str, Any], file: Path) -> Iterator[AddedToken]:
    for key in ("additional_special_tokens", "extra_special_tokens"):
        extra = config.get(key)
        if not isinstance(extra, list | dict | None):
            raise ModelFileError(file, key, "a list of tokens, or tokens by name", repr(extra)[:100])
        for value in extra.values() if isinstance(extra, dict) else extra or ():
            token = _token(value, key, file)
            if token is not None:
                yield token


def _add_missing_tokens(
    backend: tokenizers.Tokenizer, config: Mapping[str, Any], named: Mapping[str, AddedToken], file: Path
) -> None:
    """Adds the tokens that only the configuration knows, those with a stated id first and in the order of their ids."""
    decoder = config.get("added_tokens_decoder") or {}
    try:
        stated = sorted((int(token_id), value) for token_id, value in decoder.items())
    except (AttributeError, TypeError, ValueError) as error:
        raise ModelFileError(file, "added_tokens_decoder", "tokens by id", error) from error
    known = {token.content for token in backend.get_added_tokens_decoder().values()}
    for token_id, value in stated:
        token = _token(value, f"added_tokens_decoder.{token_id}", file)
        if token is not None and token.content not in known:
            backend.add_tokens([token])
            known.add(token.content)
            if backend.token_to_id(token.content) != token_id:
                found = backend.token_to_id(token.content)
                raise ModelFileError(file, f"added_tokens_decoder.{token_id}", "the next free id", found)
    rest = [token for token in (*named.values(), *_configured_tokens(config, file)) if token.content not in known]
    for token in rest:
        token.special = True
    backend.add_special_tokens(rest)


def _eos_ids(directory: Path, backend: tokenizers.Tokenizer, named_tokens: Mapping[str, str]) -> frozenset[int]:
    """The tokenizer's own end token and those that the files beside it state, which are often more."""
    own = backend.token_to_id(named_tokens["eos_token"]) if "eos_token" in named_tokens else None
    return frozenset((*([] if own is None else [own]), *directory_end_tokens(directory, None)))
