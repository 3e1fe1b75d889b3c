"""One safetensors file: 8 bytes header length (little-endian), a JSON header, then the tensors without gaps.

Format: https://huggingface.co/docs/safetensors. Every bound is checked here, so whoever maps a tensor later may trust
its offset and length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ninfer.config.json_file import parse_json_object
from ninfer.errors import ModelFileError

# The format's own limit.
MAX_HEADER_BYTES = 100_000_000
METADATA_KEY = "__metadata__"

ITEM_BYTES = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1,
    "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1,
}  # fmt: skip


@dataclass(frozen=True)
class StoredTensor:
    """A tensor as the header describes it; `offset` counts from the start of the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int


def read_safetensors_header(file: Path) -> list[StoredTensor]:
    """Every tensor of `file` in the order of its data; ModelFileError for any damage that the header can show."""
    header, data_start, file_bytes = _read_header(file)
    metadata = header.pop(METADATA_KEY, {})
    if not isinstance(metadata, dict):
        raise ModelFileError(file, METADATA_KEY, "a JSON object", type(metadata).__name__)
    tensors = [_stored_tensor(file, name, entry, data_start) for name, entry in header.items()]
    tensors.sort(key=lambda tensor: (tensor.offset, tensor.nbytes))
    _check_layout(file, tensors, data_start, file_bytes)
    return tensors


def _read_header(file: Path) -> tuple[dict[str, Any], int, int]:
    try:
        with file.open("rb") as stream:
            file_bytes = file.stat().st_size
            length = int.from_bytes(stream.read(8), "little")
            room = min(file_bytes - 8, MAX_HEADER_BYTES)
            if file_bytes < 8 or length > room:
                raise ModelFileError(file, "header length", f"at most {max(room, 0)} bytes", f"{length} bytes")
            text = stream.read(length)
    except OSError as error:
        raise ModelFileError(file, "file", "a readable safetensors file", error.strerror or repr(error)) from error
    return parse_json_object(text, file, "header"), 8 + length, file_bytes


def _stored_tensor(file: Path, name: str, entry: object, data_start: int) -> StoredTensor:
    if not isinstance(entry, dict):
        raise ModelFileError(file, name, "a JSON object", type(entry).__name__)
    dtype, shape, offsets = entry.get("dtype"), _sizes(entry.get("shape")), _sizes(entry.get("data_offsets"))
    if not isinstance(dtype, str) or dtype not in ITEM_BYTES:
        raise ModelFileError(file, f"{name}.dtype", "one of " + ", ".join(ITEM_BYTES), repr(dtype))
    if shape is None:
        raise ModelFileError(file, f"{name}.shape", "a list of sizes", repr(entry.get("shape")))
    if offsets is None or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise ModelFileError(file, f"{name}.data_offsets", "[begin, end]", repr(entry.get("data_offsets")))
    begin, end = offsets
    nbytes = math.prod(shape) * ITEM_BYTES[dtype]
    if end - begin != nbytes:
        raise ModelFileError(
            file, f"{name}.data_offsets", f"{nbytes} bytes for {dtype} {shape}", f"{end - begin} bytes"
        )
    return StoredTensor(name, dtype, tuple(shape), data_start + begin, nbytes)


def _sizes(value: object) -> tuple[int, ...] | None:
    sizes: list[Any] = value if isinstance(value, list) else [None]
    return tuple(sizes) if all(type(one) is int and 0 <= one < 1 << 63 for one in sizes) else None


def _check_layout(file: Path, tensors: list[StoredTensor], data_start: int, file_bytes: int) -> None:
    """Tensors follow one another without overlap or gap and end where the file ends."""
    position = data_start
    for tensor in tensors:
        if tensor.offset != position:
            kind = "overlapping" if tensor.offset < position else "a gap before"
            found = f"{kind} data at {tensor.offset - data_start}"
            raise ModelFileError(file, f"{tensor.name}.data_offsets", f"begin {position - data_start}", found)
        position += tensor.nbytes
        if position > file_bytes:
            found = f"the file ends at {file_bytes}"
            raise ModelFileError(file, f"{tensor.name}.data_offsets", f"data up to byte {position}", found)
    if position != file_bytes:
        raise ModelFileError(file, "size", f"{position} bytes", f"{file_bytes} bytes")
