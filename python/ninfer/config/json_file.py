"""JSON files of a model directory, read with errors that name the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ninfer.errors import ModelFileError

# Far above every known configuration or index, so that a wrong file is refused before it fills the memory.
MAX_JSON_BYTES = 256 << 20


def read_json_object(file: Path) -> dict[str, Any]:
    """The object that `file` holds; ModelFileError if it is missing, unreadable, not JSON or not an object."""
    try:
        size = file.stat().st_size
        if size > MAX_JSON_BYTES:
            raise ModelFileError(file, "size", f"at most {MAX_JSON_BYTES} bytes", f"{size} bytes")
        text = file.read_bytes()
    except FileNotFoundError:
        raise ModelFileError(file, "file", "a JSON file", "nothing") from None
    except OSError as error:
        raise ModelFileError(file, "file", "a readable JSON file", error.strerror or repr(error)) from error
    return parse_json_object(text, file, "content")


def read_optional_json_object(file: Path) -> dict[str, Any]:
    """As `read_json_object`; a file that is not there says nothing."""
    return read_json_object(file) if file.exists() else {}


def parse_json_object(text: bytes, file: Path, key: str) -> dict[str, Any]:
    """The object in `text`, which is the part `key` of `file`; a key that occurs twice is refused."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) != len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise ModelFileError(file, key, "every name once", f"{twice!r} twice")
        return values

    try:
        value = json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(file, key, "valid JSON", f"{type(error).__name__}: {error}") from error
    if not isinstance(value, dict):
        raise ModelFileError(file, key, "a JSON object", type(value).__name__)
    return value
