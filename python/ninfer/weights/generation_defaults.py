"""What the files of a model recommend for sampling, checked against what sampling can do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ninfer.config.config_fields import ConfigFields
from ninfer.weights.end_tokens import directory_end_tokens, gguf_end_tokens, token_id_sources
from ninfer.weights.model_files import GenerationDefaults

# Least and most, as a request may have them.
TEMPERATURE = (0.0, 1e4)
PROBABILITY = (0.0, 1.0)
REPETITION_PENALTY = (1e-4, 1e4)


def directory_generation_defaults(directory: Path, vocab_size: int) -> GenerationDefaults:
    """Defaults of a Hugging Face directory: generation_config.json, token ids from config.json too.

    Raises ModelFileError for values of a wrong type or out of range, and end tokens that are not in the vocabulary.
    """
    sources = token_id_sources(directory)
    bos_id, pad_id = (
        next((one for one in (_optional_count(fields, key) for fields in sources) if one is not None), None)
        for key in ("bos_token_id", "pad_token_id")
    )
    fields = sources[0]
    return GenerationDefaults(
        eos_ids=directory_end_tokens(directory, vocab_size),
        bos_id=bos_id,
        pad_id=pad_id,
        do_sample=None if fields.get("do_sample") is None else fields.boolean("do_sample"),
        temperature=_optional_number(fields, "temperature", *TEMPERATURE),
        top_k=_optional_count(fields, "top_k"),
        top_p=_optional_number(fields, "top_p", *PROBABILITY),
        min_p=_optional_number(fields, "min_p", *PROBABILITY),
        repetition_penalty=_optional_number(fields, "repetition_penalty", *REPETITION_PENALTY),
    )


def gguf_generation_defaults(metadata: Mapping[str, object], file: Path, vocab_size: int) -> GenerationDefaults:
    """Defaults of a GGUF file; few have the keys `general.sampling.*`. Errors as for a directory."""
    fields = ConfigFields(metadata, file)
    return GenerationDefaults(
        eos_ids=gguf_end_tokens(metadata, file, vocab_size),
        bos_id=_optional_count(fields, "tokenizer.ggml.bos_token_id"),
        pad_id=_optional_count(fields, "tokenizer.ggml.padding_token_id"),
        temperature=_optional_number(fields, "general.sampling.temp", *TEMPERATURE),
        top_k=_optional_count(fields, "general.sampling.top_k"),
        top_p=_optional_number(fields, "general.sampling.top_p", *PROBABILITY),
        min_p=_optional_number(fields, "general.sampling.min_p", *PROBABILITY),
        repetition_penalty=_optional_number(fields, "general.sampling.penalty_repeat", *REPETITION_PENALTY),
    )


def _optional_count(fields: ConfigFields, key: str) -> int | None:
    """A whole number >= 0, None where absent; -1 is how some files write "none"."""
    if fields.get(key) is None or fields.get(key) == -1:
        return None
    value = fields.integer(key)
    if value < 0:
        fields.fail(key, ">= 0", value)
    return value


def _optional_number(fields: ConfigFields, key: str, least: float, most: float) -> float | None:
    if fields.get(key) is None:
        return None
    value = fields.number(key)
    if not least <= value <= most:
        fields.fail(key, f"{least:g} to {most:g}", value)
    return value
