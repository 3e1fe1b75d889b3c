"""GGUF tables: equal to what the `gguf` package reads, and every kind of damage is named."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGUFReader, GGUFWriter

from ninfer.errors import ModelFileError
from ninfer.weights.gguf_file import read_gguf


def write_sample(path: Path) -> Path:
    writer = GGUFWriter(path, "llama")
    writer.add_uint32("llama.block_count", 2)
    writer.add_float32("some.float", 0.1)
    writer.add_float64("some.double", 0.1)
    writer.add_int64("some.negative", -5)
    writer.add_bool("some.yes", True)
    writer.add_string("some.text", "größe\n")
    writer.add_array("some.texts", ["a", "", "č"])
    writer.add_array("some.numbers", [1, -2, 3])
    writer.add_array("some.bools", [True, False])
    writer.add_tensor("a.weight", np.arange(12, dtype=np.float32).reshape(3, 4))
    writer.add_tensor("b.weight", np.arange(5, dtype=np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_metadata_and_tensors_equal_those_of_the_gguf_package(tmp_path: Path) -> None:
    path = write_sample(tmp_path / "x.gguf")
    found, reader = read_gguf(path), GGUFReader(path)
    expected = {key: field.contents() for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    assert found.metadata == expected
    assert list(found.tensors) == [tensor.name for tensor in reader.tensors]
    for tensor in reader.tensors:
        ours = found.tensors[tensor.name]
        assert (ours.type_name, ours.offset, ours.nbytes) == (
            tensor.tensor_type.name,
            tensor.data_offset,
            tensor.n_bytes,
        )
        assert ours.shape == tuple(reversed(tensor.shape.tolist()))


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    """The `gguf` package's own reader does not end on some of these."""
    whole = write_sample(tmp_path / "whole.gguf").read_bytes()
    path = tmp_path / "cut.gguf"
    data_end = max(tensor.offset + tensor.nbytes for tensor in read_gguf(tmp_path / "whole.gguf").tensors.values())
    for size in range(data_end):
        path.write_bytes(whole[:size])
        with pytest.raises(ModelFileError) as caught:
            read_gguf(path)
        assert caught.value.file == str(path)


def text(value: str | bytes) -> bytes:
    raw = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(raw)) + raw


def a_file(values: bytes = b"", value_count: int = 0, table: bytes = b"", tensor_count: int = 0, **more: Any) -> bytes:
    head = more.get("magic", b"GGUF") + struct.pack("<IQQ", more.get("version", 3), tensor_count, value_count)
    body = head + values + table
    return body + bytes(-len(body) % 32) + more.get("data", b"")


def a_tensor(name: str = "a", dims: tuple[int, ...] = (4,), kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


UINT32, STRING, ARRAY = struct.pack("<I", 4), struct.pack("<I", 8), struct.pack("<I", 9)
Q8_0 = 8
DAMAGES: dict[str, tuple[bytes, str]] = {
    "another format": (a_file(magic=b"GGML"), "magic"),
    "version 1": (a_file(version=1), "version"),
    "big-endian": (a_file(version=0x03000000), "version"),
    "more values than bytes": (a_file(value_count=2**60), "metadata count"),
    "more tensors than bytes": (a_file(tensor_count=2**60), "tensor count"),
    "key longer than the file": (a_file(struct.pack("<Q", 2**63) + b"k" * 20, 1), "a metadata key"),
    "key not UTF-8": (a_file(text(b"\xff") + UINT32 + bytes(8), 1), "a metadata key"),
    "key twice": (a_file((text("k") + UINT32 + bytes(4)) * 2, 2, data=bytes(32)), "k"),
    "value type unknown": (a_file(text("k") + struct.pack("<I", 13) + bytes(8), 1), "k"),
    "array longer than the file": (a_file(text("k") + ARRAY + UINT32 + struct.pack("<Q", 2**60), 1), "k"),
    "array of arrays": (a_file(text("k") + ARRAY + ARRAY + struct.pack("<Q", 1) + bytes(16), 1), "k"),
    "texts longer than the file": (a_file(text("k") + ARRAY + STRING + struct.pack("<Q", 2**40), 1), "k"),
    "alignment not a power of two": (
        a_file(text("general.alignment") + UINT32 + struct.pack("<I", 24), 1),
        "general.alignment",
    ),
    "alignment not a number": (a_file(text("general.alignment") + STRING + text("32"), 1), "general.alignment"),
    "no dimensions": (a_file(table=a_tensor(dims=()), tensor_count=1, data=bytes(16)), "a.shape"),
    "too many dimensions": (a_file(table=a_tensor(dims=(1,) * 5), tensor_count=1, data=bytes(16)), "a.shape"),
    "type unknown": (a_file(table=a_tensor(kind=999), tensor_count=1, data=bytes(16)), "a.type"),
    "blocks do not fill a row": (a_file(table=a_tensor(kind=Q8_0), tensor_count=1, data=bytes(64)), "a.shape"),
    "data truncated": (a_file(table=a_tensor(), tensor_count=1, data=bytes(15)), "a"),
    "shape overflows 64 bits": (a_file(table=a_tensor(dims=(2**62, 2**62)), tensor_count=1, data=bytes(16)), "a"),
    "offset not aligned": (a_file(table=a_tensor(offset=4), tensor_count=1, data=bytes(32)), "a.offset"),
    "tensor twice": (a_file(table=a_tensor() + a_tensor(offset=32), tensor_count=2, data=bytes(64)), "a"),
    "tensors overlap": (a_file(table=a_tensor() + a_tensor("b"), tensor_count=2, data=bytes(64)), "b.offset"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_refused_with_file_and_key(tmp_path: Path, damage: str) -> None:
    content, key = DAMAGES[damage]
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelFileError) as caught:
        read_gguf(path)
    assert (caught.value.file, caught.value.key) == (str(path), key)


def test_the_hand_made_file_is_sound_without_damage(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(a_file(text("k") + UINT32 + struct.pack("<I", 7), 1, a_tensor(), 1, data=bytes(16)))
    assert read_gguf(path).metadata == {"k": 7}
    assert read_gguf(path).tensors["a"].shape == (4,)
