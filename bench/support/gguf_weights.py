"""What decoding one token has to read of a `.gguf` file, by the file's own tensor list."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from gguf import GGUFReader

EMBEDDING, OUTPUT = "token_embd.weight", "output.weight"


@dataclass(frozen=True)
class GgufWeights:
    """`storage` is the type that holds most bytes; `bytes_per_token` counts each weight that one token multiplies."""

    storage: str
    bytes_by_type: dict[str, int]
    bytes_per_token: int
    vocab: int

    def describe(self) -> str:
        return ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in sorted(self.bytes_by_type.items()))


def read_gguf_weights(path: Path) -> GgufWeights:
    """Reads the tensor list of a language model's file."""
    tensors = {tensor.name: tensor for tensor in GGUFReader(path).tensors}
    sizes: Counter[str] = Counter()
    for tensor in tensors.values():
        sizes[tensor.tensor_type.name] += int(tensor.n_bytes)
    # With an output matrix of its own, the embedding is a table of which a token reads one row; tied, it is the output.
    unread = int(tensors[EMBEDDING].n_bytes) if OUTPUT in tensors else 0
    return GgufWeights(
        storage=sizes.most_common(1)[0][0],
        bytes_by_type=dict(sizes),
        bytes_per_token=sizes.total() - unread,
        vocab=int(tensors[EMBEDDING].shape[1]),
    )
