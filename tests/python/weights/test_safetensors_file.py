"""safetensors headers: what a sound file says, and that every kind of damage is named."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from ninfer.errors import ModelFileError
from ninfer.weights.safetensors_file import StoredTensor, read_safetensors_header

Header = dict[str, Any]


def written(path: Path, header: Header | bytes, data: bytes, length: int | None = None) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)
    return path


def entry(dtype: str, shape: list[int], begin: int, end: int) -> Header:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def test_tensors_written_by_the_safetensors_library_are_found_where_they_lie(tmp_path: Path) -> None:
    arrays = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.arange(4, dtype=np.float16)}
    arrays["scalar"] = np.array(7, np.float32)
    arrays["empty"] = np.empty((0, 4), np.float32)
    file = tmp_path / "model.safetensors"
    save_file(arrays, file, metadata={"format": "pt"})
    raw = file.read_bytes()
    found = {tensor.name: tensor for tensor in read_safetensors_header(file)}
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        tensor = found[name]
        assert tensor.shape == array.shape
        assert raw[tensor.offset : tensor.offset + tensor.nbytes] == array.tobytes()


def test_a_file_without_tensors_is_sound(tmp_path: Path) -> None:
    assert read_safetensors_header(written(tmp_path / "x", {}, b"")) == []


def test_offsets_count_from_the_start_of_the_file(tmp_path: Path) -> None:
    header = {"a": entry("BF16", [2], 0, 4)}
    start = 8 + len(json.dumps(header))
    assert read_safetensors_header(written(tmp_path / "x", header, bytes(4))) == [
        StoredTensor("a", "BF16", (2,), start, 4)
    ]


DAMAGES: dict[str, tuple[Header | bytes, bytes, str]] = {
    "dtype unknown": ({"a": entry("F12", [2], 0, 4)}, bytes(4), "a.dtype"),
    "dtype missing": ({"a": {"shape": [2], "data_offsets": [0, 4]}}, bytes(4), "a.dtype"),
    "dtype not text": ({"a": {"dtype": ["F32"], "shape": [1], "data_offsets": [0, 4]}}, bytes(4), "a.dtype"),
    "entry not an object": ({"a": [1]}, b"", "a"),
    "shape negative": ({"a": entry("F32", [-1], 0, 4)}, bytes(4), "a.shape"),
    "shape not whole": ({"a": {"dtype": "F32", "shape": [1.0], "data_offsets": [0, 4]}}, bytes(4), "a.shape"),
    "shape boolean": ({"a": {"dtype": "F32", "shape": [True], "data_offsets": [0, 4]}}, bytes(4), "a.shape"),
    "shape missing": ({"a": {"dtype": "F32", "data_offsets": [0, 4]}}, bytes(4), "a.shape"),
    "shape overflows 64 bits": ({"a": entry("F32", [2**62, 2**62], 0, 4)}, bytes(4), "a.data_offsets"),
    "shape larger than data": ({"a": entry("F32", [2], 0, 4)}, bytes(4), "a.data_offsets"),
    "offsets reversed": ({"a": entry("F32", [1], 4, 0)}, bytes(4), "a.data_offsets"),
    "offsets three": ({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4, 8]}}, bytes(4), "a.data_offsets"),
    "offsets missing": ({"a": {"dtype": "F32", "shape": [1]}}, bytes(4), "a.data_offsets"),
    "data truncated": ({"a": entry("F32", [2], 0, 8)}, bytes(7), "a.data_offsets"),
    "data beyond the file": ({"a": entry("F32", [1], 0, 4), "b": entry("F32", [1], 4, 8)}, bytes(4), "b.data_offsets"),
    "data left over": ({"a": entry("F32", [1], 0, 4)}, bytes(5), "size"),
    "tensors overlap": ({"a": entry("F32", [2], 0, 8), "b": entry("F32", [1], 4, 8)}, bytes(8), "b.data_offsets"),
    "tensors share bytes": ({"a": entry("F32", [1], 0, 4), "b": entry("F32", [1], 0, 4)}, bytes(4), "b.data_offsets"),
    "gap": ({"a": entry("F32", [1], 0, 4), "b": entry("F32", [1], 8, 12)}, bytes(12), "b.data_offsets"),
    "gap at the start": ({"a": entry("F32", [1], 4, 8)}, bytes(8), "a.data_offsets"),
    "metadata not an object": ({"__metadata__": 3}, b"", "__metadata__"),
    "name twice": (b'{"a": {}, "a": {}}', b"", "header"),
    "header not JSON": (b"{", b"", "header"),
    "header not UTF-8": (b'{"\xff": 1}', b"", "header"),
    "header not an object": (b"[]", b"", "header"),
    "header deeply nested": (b"[" * 100_000, b"", "header"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_refused_with_file_and_key(tmp_path: Path, damage: str) -> None:
    header, data, key = DAMAGES[damage]
    file = written(tmp_path / "model.safetensors", header, data)
    with pytest.raises(ModelFileError) as caught:
        read_safetensors_header(file)
    assert (caught.value.file, caught.value.key) == (str(file), key)


@pytest.mark.parametrize(
    "content",
    [b"", b"\x02", struct.pack("<Q", 100) + b"{}", struct.pack("<Q", 2**63) + b"{}", struct.pack("<Q", 2**64 - 1)],
)
def test_a_header_longer_than_the_file_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(content)
    with pytest.raises(ModelFileError) as caught:
        read_safetensors_header(file)
    assert caught.value.key == "header length"


def test_every_truncation_of_a_sound_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    save_file({"a": np.ones((2, 3), np.float32), "b": np.ones(4, np.float16)}, file)
    whole = file.read_bytes()
    for size in range(len(whole)):
        file.write_bytes(whole[:size])
        with pytest.raises(ModelFileError):
            read_safetensors_header(file)


def test_a_directory_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="readable"):
        read_safetensors_header(tmp_path)
