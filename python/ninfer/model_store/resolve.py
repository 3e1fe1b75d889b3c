"""What a user calls a model, to the path that opens it."""

from __future__ import annotations

from pathlib import Path

from ninfer.errors import ModelNotFoundError
from ninfer.model_store.hugging_face import hugging_face_directory
from ninfer.model_store.model_store import ModelStore
from ninfer.model_store.pinned import PINNED


def resolve_model(model: str, store: ModelStore) -> Path:
    """Path of a Hugging Face directory or `.gguf` file.

    In this order: a path that exists; a name in the store; `org/name` from the Hugging Face cache or hub. A pinned
    model is never fetched here, only by `pull`. Raises ModelNotFoundError saying what would work, FetchError if a
    download fails.
    """
    path = Path(model).expanduser()
    if path.exists():
        return _existing(path)
    if path.suffix == ".gguf" or path.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1:
        raise ModelNotFoundError(f"{model} does not exist; a model is a Hugging Face directory or a .gguf file")
    stored = store.find(model)
    if stored is not None:
        return stored.path
    if model in PINNED:
        raise ModelNotFoundError(f"{model} is not in the model store yet: run `ninfer models pull {model}`")
    if "/" in model:
        return hugging_face_directory(model)
    known = sorted({*PINNED, *(one.entry.name for one in store.list_models())})
    message = f"{model!r} is neither a path, nor one of {', '.join(known)}, nor org/name of the Hugging Face hub"
    raise ModelNotFoundError(message)


def _existing(path: Path) -> Path:
    if path.is_dir():
        if (path / "config.json").exists():
            return path
        raise ModelNotFoundError(f"{path} is a directory without config.json, so it is no Hugging Face model")
    if path.suffix == ".gguf":
        return path
    raise ModelNotFoundError(f"{path} is neither a Hugging Face directory nor a .gguf file")
