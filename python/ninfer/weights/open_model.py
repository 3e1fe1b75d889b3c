"""Opening a model path, whatever its format."""

from __future__ import annotations

from pathlib import Path

from ninfer.errors import ModelNotFoundError
from ninfer.weights.gguf_model import open_gguf
from ninfer.weights.hf_directory import open_hf_directory
from ninfer.weights.model_files import ModelFiles


def open_model(path: str | Path) -> ModelFiles:
    """Reads and checks the description of a model: a Hugging Face directory or a `.gguf` file.

    Raises ModelNotFoundError if there is neither, ModelFileError naming file, key, expected and found for everything
    that is damaged, missing or unsupported.
    """
    path = Path(path)
    if path.is_dir():
        return open_hf_directory(path)
    if path.is_file() and path.suffix == ".gguf":
        return open_gguf(path)
    what = "is neither a directory nor a .gguf file" if path.exists() else "does not exist"
    raise ModelNotFoundError(f"{path} {what}; a model is a Hugging Face directory or a .gguf file")
