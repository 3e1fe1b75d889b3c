"""Where a tensor's values come from: bytes of a file as they lie there, or an array that has to be made first.

Names are those of the Hugging Face text model without prefix: `embed_tokens.weight`,
`layers.0.self_attn.q_proj.weight`, `norm.weight`, `lm_head.weight` (absent if tied). Matrices are row-major
[out features, in features]; the convolution is [channels, 1, width].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Encoding: TypeAlias = Literal["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1"]

# (values per block, bytes per block); blocks run along a row and never cross its end.
BLOCKS: dict[Encoding, tuple[int, int]] = {
    "F32": (1, 4),
    "F16": (1, 2),
    "BF16": (1, 2),
    "Q8_0": (32, 34),
    "Q4_0": (32, 18),
    "Q4_1": (32, 20),
}


def row_bytes(encoding: Encoding, columns: int) -> int:
    """Bytes of one row of `columns` values; a ValueError if blocks do not fill it."""
    values, size = BLOCKS[encoding]
    if columns % values:
        raise ValueError(f"{encoding} rows hold a multiple of {values} values, not {columns}")
    return columns // values * size


def encoded_bytes(encoding: Encoding, shape: tuple[int, ...]) -> int:
    """Bytes of a whole tensor; quantised blocks run along the last axis."""
    columns = shape[-1] if shape else 1
    return math.prod(shape[:-1]) * row_bytes(encoding, columns)


@dataclass(frozen=True)
class FileTensor:
    """`nbytes` bytes of `file` from `offset`, row-major, little-endian; checked to lie inside the file when opened."""

    name: str
    shape: tuple[int, ...]
    encoding: Encoding
    file: Path
    offset: int
    nbytes: int

    def __post_init__(self) -> None:
        expected = encoded_bytes(self.encoding, self.shape)
        if self.nbytes != expected or self.offset < 0:
            raise ValueError(f"{self.name}: {self.nbytes} bytes at {self.offset}, shape needs {expected}")


@dataclass(frozen=True)
class ArrayTensor:
    """A tensor whose stored form differs from what the model needs, so its bytes are made when asked for.

    `load()` returns a new C-contiguous array: float32 of `shape` for encoding F32, else uint8 holding the encoded
    bytes row after row. Nothing is kept between calls, so loading tensors one at a time keeps memory at one tensor.
    Raises ModelFileError if the stored values cannot be. dequantised_from: the quantised type of the file where `load`
    had to give that up for f32.
    """

    name: str
    shape: tuple[int, ...]
    encoding: Encoding
    load: Callable[[], NDArray[Any]]
    dequantised_from: str | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the array that `load()` returns."""
        return encoded_bytes(self.encoding, self.shape)


TensorSource: TypeAlias = FileTensor | ArrayTensor


def read_encoded(tensor: TensorSource) -> NDArray[np.uint8]:
    """The tensor's encoded bytes as one flat array: mapped from the file, or newly made."""
    if isinstance(tensor, ArrayTensor):
        return tensor.load().reshape(-1).view(np.uint8)
    if tensor.nbytes == 0:
        return np.empty(0, np.uint8)
    return np.memmap(tensor.file, np.uint8, "r", tensor.offset, (tensor.nbytes,))
