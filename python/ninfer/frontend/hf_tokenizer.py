"""Reads a tokenizer from a Hugging Face model directory, with the meaning `transformers` gives its files.

Whether a text begins with BOS is what the post-processor in tokenizer.json says; `add_bos_token` in the configuration
belongs to tokenizers without that file and is ignored, as `transformers` 5 does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, decoders

from ninfer.errors import ModelFileError
from ninfer.frontend.tokenizer_parts import TokenizerParts

_NAMED_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
_TOKEN_FLAGS = ("single_word", "lstrip", "rstrip", "normalized")


def hf_tokenizer_parts(directory: Path) -> TokenizerParts:
    """The parts of the tokenizer in `directory`; ModelFileError names the file and key that do not fit."""
    config_file = directory / "tokenizer_config.json"
    config = {**_json_object(directory / "special_tokens_map.json"), **_json_object(config_file)}
    backend = _backend(directory / "tokenizer.json")
    tokens = {name: _token(config.get(name), name, config_file) for name in _NAMED_TOKENS}
    named = {name: token for name, token in tokens.items() if token is not None}
    _add_missing_tokens(backend, config, named, config_file)
    named_tokens = {name: token.content for name, token in named.items()}
    return TokenizerParts(backend, named_tokens, _eos_ids(directory, backend, named_tokens))


def _json_object(file: Path) -> dict[str, Any]:
    """The object in an optional JSON file; a file that is not there says nothing."""
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise ModelFileError(file, "(whole file)", "a JSON object", error) from error
    if not isinstance(value, dict):
        raise ModelFileError(file, "(whole file)", "a JSON object", type(value).__name__)
    return value


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
    if isinstance(value, str):
        return AddedToken(value, special=True, normalized=False)
    if isinstance(value, dict) and isinstance(value.get("content"), str):
        flags = {flag: bool(value.get(flag, False)) for flag in _TOKEN_FLAGS}
        return AddedToken(value["content"], special=bool(value.get("special", True)), **flags)
    raise ModelFileError(file, key, "a string or an object with 'content'", value)


def _configured_tokens(config: Mapping[str, Any], file: Path) -> Iterator[AddedToken]:
    for key in ("additional_special_tokens", "extra_special_tokens"):
        extra = config.get(key) or []
        for value in extra.values() if isinstance(extra, dict) else extra:
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
    """The tokenizer's own end token and those of the generation configuration, which often lists more."""
    own = backend.token_to_id(named_tokens["eos_token"]) if "eos_token" in named_tokens else None
    ids = set() if own is None else {own}
    for name in ("config.json", "generation_config.json"):
        value = _json_object(directory / name).get("eos_token_id")
        listed = value if isinstance(value, list) else [] if value is None else [value]
        if not all(type(token_id) is int and token_id >= 0 for token_id in listed):
            raise ModelFileError(directory / name, "eos_token_id", "a token id or a list of them", value)
        ids.update(listed)
    return frozenset(ids)
