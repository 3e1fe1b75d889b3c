"""One GGUF file's metadata and tensor table.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Types, block sizes and dequantisers come from the
`gguf` package. Its reader is not used: it checks no bounds, so that a damaged count makes it build arrays without end,
and it keeps two NumPy arrays per vocabulary entry, which alone is more memory than loading a model may take.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ninfer.errors import ModelFileError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32
MAX_DIMENSIONS = 4

# Value type ids of the format.
_SCALARS = {
    0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?", 10: "<u8", 11: "<i8", 12: "<f8",
}  # fmt: skip
_STRING = 8
_ARRAY = 9


@dataclass(frozen=True)
class GgufTensor:
    """A tensor as the file lists it: `shape` row-major (the file's dimensions reversed), `offset` from file start."""

    name: str
    shape: tuple[int, ...]
    type_name: str
    offset: int
    nbytes: int


@dataclass(frozen=True)
class GgufFile:
    """Metadata (scalars, strings, lists of them) and tensors, all inside the file."""

    path: Path
    metadata: dict[str, Any]
    tensors: dict[str, GgufTensor]


def read_gguf(path: Path) -> GgufFile:
    """Reads everything but tensor data; ModelFileError for any damage that the table can show."""
    try:
        if path.stat().st_size < 24:
            raise ModelFileError(path, "size", "at least 24 bytes", f"{path.stat().st_size} bytes")
        data = np.memmap(path, np.uint8, "r")
    except OSError as error:
        raise ModelFileError(path, "file", "a readable GGUF file", error.strerror or repr(error)) from error
    cursor = _Cursor(path, data.data)
    if cursor.take(4, "magic") != MAGIC:
        raise ModelFileError(path, "magic", MAGIC.decode(), bytes(data[:4]))
    version = cursor.number("<I", "version")
    if version not in VERSIONS:
        raise ModelFileError(path, "version", "2 or 3, little-endian", version)
    tensor_count, value_count = cursor.count("tensor count", 24), cursor.count("metadata count", 13)
    metadata: dict[str, Any] = {}
    for _ in range(value_count):
        key = cursor.text("a metadata key")
        if key in metadata:
            raise ModelFileError(path, key, "every key once", "twice")
        metadata[key] = cursor.value(cursor.number("<I", key), key)
    tensors = _tensor_table(cursor, tensor_count, metadata)
    return GgufFile(path, metadata, tensors)


class _Cursor:
    """A position in the file; every step checks that the file is that long."""

    def __init__(self, path: Path, view: memoryview) -> None:
        self.path = path
        self.view = view
        self.position = 0

    def take(self, size: int, key: str) -> bytes:
        end = self.position + size
        if end > len(self.view):
            raise ModelFileError(self.path, key, f"data up to byte {end}", f"the file ends at {len(self.view)}")
        taken = bytes(self.view[self.position : end])
        self.position = end
        return taken

    def number(self, layout: str, key: str) -> int:
        value: int = struct.unpack(layout, self.take(struct.calcsize(layout), key))[0]
        return value

    def count(self, key: str, least_bytes: int) -> int:
        """A number of things of at least `least_bytes` each, so that no more is announced than the file can hold."""
        count = self.number("<Q", key)
        room = (len(self.view) - self.position) // least_bytes
        if count > room:
            raise ModelFileError(self.path, key, f"at most {room}, the file ends at {len(self.view)}", count)
        return count

    def text(self, key: str) -> str:
        raw = self.take(self.number("<Q", key), key)
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise ModelFileError(self.path, key, "UTF-8", raw[:40]) from error

    def value(self, value_type: int, key: str) -> Any:
        if value_type == _STRING:
            return self.text(key)
        if value_type == _ARRAY:
            return self._array(key)
        dtype = self._scalar_type(value_type, key)
        return np.frombuffer(self.take(dtype.itemsize, key), dtype)[0].item()

    def _array(self, key: str) -> list[Any]:
        item_type = self.number("<I", key)
        if item_type == _STRING:
            return [self.text(key) for _ in range(self.count(key, 8))]
        dtype = self._scalar_type(item_type, key)
        count = self.count(key, dtype.itemsize)
        items: list[Any] = np.frombuffer(self.take(count * dtype.itemsize, key), dtype).tolist()
        return items

    def _scalar_type(self, value_type: int, key: str) -> np.dtype[Any]:
        if value_type not in _SCALARS:
            raise ModelFileError(self.path, key, "a known value type", value_type)
        return np.dtype(_SCALARS[value_type])


def _tensor_table(cursor: _Cursor, count: int, metadata: dict[str, Any]) -> dict[str, GgufTensor]:
    rows = [_tensor_row(cursor) for _ in range(count)]
    alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise ModelFileError(cursor.path, "general.alignment", "a power of two", alignment)
    data_start = -(-cursor.position // alignment) * alignment
    tensors: dict[str, GgufTensor] = {}
    for name, shape, type_id, offset in rows:
        if name in tensors:
            raise ModelFileError(cursor.path, name, "every tensor once", "twice")
        if offset % alignment:
            raise ModelFileError(cursor.path, f"{name}.offset", f"a multiple of {alignment}", offset)
        type_name, nbytes = _type_and_bytes(cursor.path, name, shape, type_id)
        tensors[name] = GgufTensor(name, shape, type_name, data_start + offset, nbytes)
    _check_layout(cursor.path, list(tensors.values()), len(cursor.view))
    return tensors


def _tensor_row(cursor: _Cursor) -> tuple[str, tuple[int, ...], int, int]:
    name = cursor.text("a tensor name")
    dimensions = cursor.number("<I", name)
    if not 1 <= dimensions <= MAX_DIMENSIONS:
        raise ModelFileError(cursor.path, f"{name}.shape", f"1 to {MAX_DIMENSIONS} dimensions", dimensions)
    shape = tuple(reversed([cursor.number("<Q", name) for _ in range(dimensions)]))
    return name, shape, cursor.number("<I", name), cursor.number("<Q", name)


def _type_and_bytes(path: Path, name: str, shape: tuple[int, ...], type_id: int) -> tuple[str, int]:
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

    try:
        tensor_type = GGMLQuantizationType(type_id)
    except ValueError:
        raise ModelFileError(path, f"{name}.type", "a known tensor type", type_id) from None
    values, size = GGML_QUANT_SIZES[tensor_type]
    if shape[-1] % values:
        expected = f"a multiple of {values} columns for {tensor_type.name}"
        raise ModelFileError(path, f"{name}.shape", expected, list(shape))
    return tensor_type.name, math.prod(shape) // values * size


def _check_layout(path: Path, tensors: list[GgufTensor], file_bytes: int) -> None:
    position, before = 0, ""
    for tensor in sorted(tensors, key=lambda one: (one.offset, one.nbytes)):
        if tensor.offset < position:
            raise ModelFileError(path, f"{tensor.name}.offset", f">= {position}, the end of {before}", tensor.offset)
        position, before = tensor.offset + tensor.nbytes, tensor.name
        if position > file_bytes:
            found = f"the file ends at {file_bytes}"
            raise ModelFileError(path, tensor.name, f"data up to byte {position}", found)
