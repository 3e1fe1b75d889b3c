"""Any stored encoding to f32, a few rows at a time."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer.weights.tensor_source import TensorSource, read_encoded, row_bytes

# Dequantisers make several temporary copies of what they are given; this bounds them to a few megabytes.
VALUES_AT_ONCE = 1 << 18


def as_float32(tensor: TensorSource) -> NDArray[np.float32]:
    """The tensor's values, f32 of its shape."""
    raw = read_encoded(tensor)
    if tensor.encoding == "F32":
        return raw.view(np.float32).reshape(tensor.shape)
    if tensor.encoding == "F16":
        return raw.view(np.float16).astype(np.float32).reshape(tensor.shape)
    if tensor.encoding == "BF16":
        return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(tensor.shape)
    columns = tensor.shape[-1]
    rows = raw.reshape(-1, row_bytes(tensor.encoding, columns))
    return dequantise_rows(rows, tensor.encoding, columns).reshape(tensor.shape)


def dequantise_rows(rows: NDArray[np.uint8], type_name: str, columns: int) -> NDArray[np.float32]:
    """Encoded rows [n, bytes per row] of a GGUF type to f32 [n, columns], through the `gguf` package."""
    from gguf.constants import GGMLQuantizationType
    from gguf.quants import dequantize

    values = np.empty((rows.shape[0], columns), np.float32)
    step = max(1, VALUES_AT_ONCE // max(columns, 1))
    for start in range(0, rows.shape[0], step):
        part: NDArray[Any] = np.ascontiguousarray(rows[start : start + step])
        values[start : start + step] = dequantize(part, GGMLQuantizationType[type_name])
    return values


@cache
def can_dequantise(type_name: str) -> bool:
    """Whether the `gguf` package turns this type into f32."""
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
    from gguf.quants import dequantize

    tensor_type = GGMLQuantizationType[type_name]
    values, size = GGML_QUANT_SIZES[tensor_type]
    try:
        return math.prod(dequantize(np.zeros((1, size), np.uint8), tensor_type).shape) == values
    except RuntimeError:
        # How the package says that it has no dequantiser for the type.
        return False
