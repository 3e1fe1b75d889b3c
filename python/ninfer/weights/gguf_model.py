"""A model in one GGUF file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ninfer.config.model_config import ModelConfig
from ninfer.errors import ModelFileError
from ninfer.weights.dequantise import can_dequantise, dequantise_rows
from ninfer.weights.expected_tensors import check_tensors, expected_tensors
from ninfer.weights.generation_defaults import gguf_generation_defaults
from ninfer.weights.gguf_config import ROPE_FACTORS, config_from_gguf
from ninfer.weights.gguf_file import GgufFile, GgufTensor, read_gguf
from ninfer.weights.gguf_layout import GgufEntry, gguf_entry
from ninfer.weights.model_files import ModelFiles
from ninfer.weights.tensor_source import BLOCKS, ArrayTensor, Encoding, FileTensor, TensorSource

EMBEDDING = "token_embd.weight"
HEAD = "output.weight"

_LAYER = re.compile(r"^blk\.(\d+)\.")


def open_gguf(path: Path) -> ModelFiles:
    """Opens `path`; ModelFileError for everything that is damaged, missing or unsupported."""
    file = read_gguf(path)
    config = _config(file)
    entries = {name: gguf_entry(config, name) for name in expected_tensors(config)}
    _check_shapes(file, config, entries)
    tensors = {name: _source(file, name, entry) for name, entry in entries.items()}
    generation = gguf_generation_defaults(file.metadata, path, config.vocab_size)
    return ModelFiles(path, "gguf", config, tensors, generation, file.metadata)


def _config(file: GgufFile) -> ModelConfig:
    if file.metadata.get("split.count", 1) not in (0, 1):
        raise ModelFileError(file.path, "split.count", "1: join the parts first", file.metadata["split.count"])
    embedding = file.tensors.get(EMBEDDING)
    vocab_rows = embedding.shape[0] if embedding else 0
    factors = file.tensors.get(ROPE_FACTORS)
    rope_factors = None if factors is None else tuple(float(one) for one in _float32(file.path, factors).reshape(-1))
    config = config_from_gguf(file.metadata, file.path, vocab_rows or 1, HEAD not in file.tensors, rope_factors)
    if embedding is None:
        raise ModelFileError(file.path, EMBEDDING, f"a tensor of {config.hidden_size} columns", "nothing")
    return config


def _check_shapes(file: GgufFile, config: ModelConfig, entries: Mapping[str, GgufEntry]) -> None:
    """Every expected tensor is there in its shape, and nothing else but prediction layers and rope factors."""
    expected = expected_tensors(config)
    names = {entry.gguf_name: name for name, entry in entries.items()}
    found: dict[str, tuple[int, ...]] = {}
    for tensor in file.tensors.values():
        layer = _LAYER.match(tensor.name)
        if tensor.name == ROPE_FACTORS or (layer and int(layer[1]) >= config.layers):
            continue
        if tensor.type_name not in BLOCKS and not can_dequantise(tensor.type_name):
            raise ModelFileError(file.path, f"{tensor.name}.type", "a type with a dequantiser", tensor.type_name)
        name = names.get(tensor.name, tensor.name)
        found[name] = _with_middle_axis(tensor.shape, expected.get(name, ()))
    check_tensors(config, found, {name: entry.gguf_name for name, entry in entries.items()}, file.path)


def _with_middle_axis(stored: tuple[int, ...], expected: tuple[int, ...]) -> tuple[int, ...]:
    """The convolution is stored without its middle axis of size 1."""
    return expected if len(expected) == 3 and stored == (expected[0], expected[2]) else stored


def _source(file: GgufFile, name: str, entry: GgufEntry) -> TensorSource:
    tensor = file.tensors[entry.gguf_name]
    shape = tensor.shape
    if name.endswith("conv1d.weight"):
        shape = (shape[0], 1, shape[-1])
    encoding = cast(Encoding, tensor.type_name)
    lossless = encoding in BLOCKS
    untouched = entry.row_order is None and entry.column_order is None and entry.values == "as stored"
    if lossless and untouched:
        return FileTensor(name, shape, encoding, file.path, tensor.offset, tensor.nbytes)
    whole_blocks = lossless and (entry.column_order is None or entry.column_run % BLOCKS[encoding][0] == 0)
    if whole_blocks and entry.values == "as stored":
        return ArrayTensor(name, shape, encoding, lambda: _reordered_bytes(file.path, tensor, entry))
    dequantised_from = None if tensor.type_name in ("F32", "F16", "BF16") else tensor.type_name
    return ArrayTensor(
        name, shape, "F32", lambda: _float32_values(file.path, tensor, entry).reshape(shape), dequantised_from
    )


def _stored_rows(path: Path, tensor: GgufTensor) -> NDArray[np.uint8]:
    rows = int(np.prod(tensor.shape[:-1], dtype=np.int64))
    data = np.memmap(path, np.uint8, "r", tensor.offset, (tensor.nbytes,))
    return data.reshape(rows, tensor.nbytes // max(rows, 1))


def _reordered_bytes(path: Path, tensor: GgufTensor, entry: GgufEntry) -> NDArray[Any]:
    """Rows and columns in our order, blocks unopened: uint8 [rows, bytes per row], or f32 for F32."""
    encoding = cast(Encoding, tensor.type_name)
    values, size = BLOCKS[encoding]
    rows = _stored_rows(path, tensor)
    if len(tensor.shape) == 1:
        rows = rows.reshape(-1, size)
    if entry.row_order is not None:
        rows = rows[entry.row_order]
    if entry.column_order is not None:
        blocks = entry.column_order[::values] // values
        rows = np.take(rows.reshape(rows.shape[0], -1, size), blocks, axis=1)
    rows = np.ascontiguousarray(rows)
    return rows.reshape(-1).view(np.float32).reshape(tensor.shape) if encoding == "F32" else rows


def _float32(path: Path, tensor: GgufTensor) -> NDArray[np.float32]:
    if not can_dequantise(tensor.type_name):
        raise ModelFileError(path, f"{tensor.name}.type", "a type with a dequantiser", tensor.type_name)
    columns = tensor.shape[-1]
    return dequantise_rows(_stored_rows(path, tensor), tensor.type_name, columns).reshape(tensor.shape)


def _float32_values(path: Path, tensor: GgufTensor, entry: GgufEntry) -> NDArray[np.float32]:
    stored = _float32(path, tensor)
    if entry.row_order is not None:
        stored = stored[entry.row_order]
    if entry.column_order is not None:
        stored = stored[:, entry.column_order]
    if entry.values == "one added":
        # The norm computes 1 + weight, which gives back the stored value: the difference is exact near 1.
        stored = stored - np.float32(1)
    if entry.values == "negative exponential":
        if not bool((stored < 0).all()):
            raise ModelFileError(path, tensor.name, "values < 0, being -exp(A_log)", float(stored.max()))
        stored = np.log(-stored.astype(np.float64)).astype(np.float32)
    return np.ascontiguousarray(stored, np.float32)
