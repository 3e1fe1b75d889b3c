"""Generation defaults of a Hugging Face directory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ninfer.config.config_fields import ConfigFields
from ninfer.weights.json_file import read_json_object
from ninfer.weights.model_files import GenerationDefaults


def read_generation_defaults(
    generation_file: Path, model_config: Mapping[str, Any], config_file: Path
) -> GenerationDefaults:
    """Defaults from generation_config.json; token ids that it leaves out come from config.json.

    Raises ModelFileError for values of a wrong type.
    """
    inner = model_config.get("text_config")
    inner = inner if isinstance(inner, Mapping) else {}
    sources = [ConfigFields(model_config, config_file), ConfigFields(inner, config_file, "text_config.")]
    if not generation_file.exists():
        return GenerationDefaults(*_token_ids(sources))
    fields = ConfigFields(read_json_object(generation_file), generation_file)
    eos_ids, bos_id, pad_id = _token_ids([fields, *sources])
    return GenerationDefaults(
        eos_ids=eos_ids,
        bos_id=bos_id,
        pad_id=pad_id,
        do_sample=None if fields.get("do_sample") is None else fields.boolean("do_sample"),
        temperature=_optional_number(fields, "temperature"),
        top_k=_optional_id(fields, "top_k"),
        top_p=_optional_number(fields, "top_p"),
        min_p=_optional_number(fields, "min_p"),
        repetition_penalty=_optional_number(fields, "repetition_penalty"),
    )


def _token_ids(sources: list[ConfigFields]) -> tuple[tuple[int, ...], int | None, int | None]:
    eos_ids = next((ids for ids in map(_eos_ids, sources) if ids), ())
    bos_id, pad_id = (
        next((one for one in (_optional_id(fields, key) for fields in sources) if one is not None), None)
        for key in ("bos_token_id", "pad_token_id")
    )
    return eos_ids, bos_id, pad_id


def _eos_ids(fields: ConfigFields) -> tuple[int, ...]:
    if not isinstance(fields.get("eos_token_id"), list):
        one = _optional_id(fields, "eos_token_id")
        return () if one is None else (one,)
    ids: list[int] = []
    for item in fields.items("eos_token_id") or ():
        if not isinstance(item, int) or isinstance(item, bool) or item < 0:
            fields.fail("eos_token_id", "token ids", repr(item))
        ids.append(item)
    return tuple(ids)


def _optional_id(fields: ConfigFields, key: str) -> int | None:
    """A whole number >= 0, None where absent; -1 is how some files write "none"."""
    if fields.get(key) is None or fields.get(key) == -1:
        return None
    value = fields.integer(key)
    if value < 0:
        fields.fail(key, ">= 0", value)
    return value


def _optional_number(fields: ConfigFields, key: str) -> float | None:
    return None if fields.get(key) is None else fields.number(key)
