"""The local model store: one directory per model, complete or absent.

    ROOT/NAME/FILE           the model
    ROOT/NAME/entry.json     where it came from, its size and hash
    ROOT/.partial/NAME/      work in progress; moved to ROOT/NAME by one rename when complete
    ROOT/.locks/NAME         held while NAME is added or removed

A process killed at any moment leaves at most ROOT/.partial/NAME, which the next change to NAME removes first.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from ninfer.errors import ModelNotFoundError
from ninfer.model_store.store_lock import locked

ENTRY_FILE = "entry.json"


@dataclass(frozen=True)
class StoreEntry:
    """What the store knows about one model. `sha256` and `file_bytes` describe `file_name`."""

    name: str
    file_name: str
    file_bytes: int
    sha256: str
    source: str
    licence: str


@dataclass(frozen=True)
class StoredModel:
    """A complete model of the store and the path that opens it."""

    entry: StoreEntry
    path: Path


@dataclass(frozen=True)
class ModelStore:
    """The models below `root`, a directory that need not exist yet."""

    root: Path

    def find(self, name: str) -> StoredModel | None:
        """The model called `name` if it is there with its full size."""
        if not is_model_name(name):
            return None
        try:
            entry = StoreEntry(**json.loads((self.root / name / ENTRY_FILE).read_text()))
            path = self.root / name / entry.file_name
            complete = path.stat().st_size == entry.file_bytes and entry.name == name
        except (OSError, ValueError, TypeError):
            return None
        return StoredModel(entry, path) if complete else None

    def list_models(self) -> list[StoredModel]:
        """Every complete model, by name."""
        names = sorted(one.name for one in self.root.iterdir()) if self.root.is_dir() else []
        return [model for model in map(self.find, names) if model is not None]

    def remove(self, name: str) -> StoredModel:
        """Deletes a model; ModelNotFoundError if there is none of this name. Readers that have it open keep it."""
        with self.changing(name, _nothing) as change:
            model = self.find(name)
            if model is None:
                raise ModelNotFoundError(f"no model called {name!r} in {self.root}; there is: {self._names()}")
            change.discard_old()
        return model

    @contextmanager
    def changing(self, name: str, waiting: Callable[[], None]) -> Iterator[StoreChange]:
        """Holds `name`'s lock and offers an empty work directory, which is gone afterwards in every case."""
        if not is_model_name(name):
            raise ModelNotFoundError(f"{name!r} is not a model name: letters, digits, '.', '-', '_'")
        with locked(self.root / ".locks" / name, waiting) as lock:
            work = self.root / ".partial" / name
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
            try:
                yield StoreChange(self.root / name, work, lock)
            finally:
                shutil.rmtree(work, ignore_errors=True)

    def _names(self) -> str:
        return ", ".join(model.entry.name for model in self.list_models()) or "none"


@dataclass(frozen=True)
class StoreChange:
    """A change of one model under its lock: fill `work`, then publish."""

    final: Path
    work: Path
    lock: int

    def publish(self, directory: Path, entry: StoreEntry) -> Path:
        """Makes `directory` (inside `work`, holding entry.file_name) the model; returns the path of its file."""
        (directory / ENTRY_FILE).write_text(json.dumps(asdict(entry), indent=2) + "\n")
        for file in directory.iterdir():
            _sync(file)
        _sync(directory)
        self.discard_old()
        directory.rename(self.final)
        _sync(self.final.parent)
        return self.final / entry.file_name

    def discard_old(self) -> None:
        """Takes the present model, complete or not, out of sight in one step; its bytes go with the work directory."""
        if self.final.exists():
            self.final.rename(self.work / ".old")


def is_model_name(name: str) -> bool:
    """Whether `name` can name a directory of the store without leading anywhere else."""
    return bool(name) and not name.startswith(".") and all(one.isalnum() or one in "._-" for one in name)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _nothing() -> None:
    return
