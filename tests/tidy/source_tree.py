"""The files that a tidy rule judges, and what a rule answers."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

CPP_SUFFIXES = frozenset({".h", ".cpp", ".cu", ".cuh"})
NOT_SOURCE = frozenset({"build", "dist", "out", "__pycache__", ".git"})


@dataclass(frozen=True)
class Finding:
    """One place that breaks a rule. `line` counts from 1; 0 means the whole file."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}" if self.line else f"{self.path}: {self.message}"


@dataclass(frozen=True)
class SourceTree:
    """A folder and the files in it that belong to the project, as sorted paths relative to the folder."""

    root: Path
    files: tuple[str, ...]

    @classmethod
    def of_repository(cls, root: Path) -> SourceTree:
        """What git tracks or would track; every file where the folder is no git repository (a source package)."""
        if not (root / ".git").exists():
            return cls.of_folder(root)
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
        names = {name for name in listed.split("\0") if name}
        return cls(root, tuple(sorted(name for name in names if (root / name).is_file())))

    @classmethod
    def of_folder(cls, root: Path) -> SourceTree:
        found = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
        kept = (
            path for path in found if not any(part in NOT_SOURCE or part.startswith(".venv") for part in path.parts)
        )
        return cls(root, tuple(sorted(path.as_posix() for path in kept)))

    @cached_property
    def file_set(self) -> frozenset[str]:
        return frozenset(self.files)

    def cpp_files(self, *folders: str) -> list[str]:
        return [name for name in self._under(folders) if Path(name).suffix in CPP_SUFFIXES]

    def python_files(self, *folders: str) -> list[str]:
        return [name for name in self._under(folders) if name.endswith(".py")]

    def text(self, name: str) -> str:
        return (self.root / name).read_text(encoding="utf-8")

    def text_lines(self, name: str) -> Iterator[tuple[int, str]]:
        """Numbered lines of a text file; nothing for a file that is not UTF-8 text."""
        content = (self.root / name).read_bytes()
        if b"\0" in content[:8192]:
            return
        yield from enumerate(content.decode("utf-8", errors="replace").splitlines(), start=1)

    def _under(self, folders: tuple[str, ...]) -> list[str]:
        return [
            name for name in self.files if not folders or name.startswith(tuple(f"{folder}/" for folder in folders))
        ]
