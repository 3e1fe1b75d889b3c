"""The end tokens that a model's files state. The tokenizer adds those that only its vocabulary tells."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ninfer.config.config_fields import ConfigFields
from ninfer.config.json_file import read_optional_json_object

_GGUF_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")


def token_id_sources(directory: Path) -> list[ConfigFields]:
    """What may state token ids in a Hugging Face directory, the most specific first: generation_config.json,
    config.json, its text part."""
    generation, config = directory / "generation_config.json", directory / "config.json"
    values = read_optional_json_object(config)
    text = values.get("text_config")
    return [
        ConfigFields(read_optional_json_object(generation), generation),
        ConfigFields(values, config),
        ConfigFields(text if isinstance(text, Mapping) else {}, config, "text_config."),
    ]


def directory_end_tokens(directory: Path, vocab_size: int | None) -> tuple[int, ...]:
    """Every end token of a Hugging Face directory, each once; all files together, because some list only one of two.

    -1 is how some files write "none". vocab_size: ids must be below it; None where the caller cannot know it. Raises
    ModelFileError for anything but such ids.
    """
    ids = (one for fields in token_id_sources(directory) for one in _end_tokens(fields, vocab_size))
    return tuple(dict.fromkeys(ids))


def gguf_end_tokens(metadata: Mapping[str, object], file: Path, token_count: int) -> tuple[int, ...]:
    """Every end token that GGUF metadata state, each once; ModelFileError for anything but ids below `token_count`."""
    fields = ConfigFields(metadata, file)
    keys = [f"tokenizer.ggml.{key}" for key in _GGUF_KEYS]
    stated = [(key, fields.get(key)) for key in keys if fields.get(key) is not None]
    return tuple(dict.fromkeys(_token_id(fields, key, value, token_count) for key, value in stated))


def _end_tokens(fields: ConfigFields, vocab_size: int | None) -> list[int]:
    value = fields.get("eos_token_id")
    if value is None or value == -1:
        return []
    listed = value if isinstance(value, list) else [value]
    return [_token_id(fields, "eos_token_id", one, vocab_size) for one in listed]


def _token_id(fields: ConfigFields, key: str, value: object, vocab_size: int | None) -> int:
    if type(value) is not int or value < 0 or (vocab_size is not None and value >= vocab_size):
        expected = "token ids" if vocab_size is None else f"token ids below the vocabulary size {vocab_size}"
        fields.fail(key, expected, repr(value)[:100])
    return value
