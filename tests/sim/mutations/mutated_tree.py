"""A copy of the repository that may be damaged, and its build."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from tests.tidy.source_tree import SourceTree

# Templates and inline functions are judged where they are used: these sources together use all headers.
_USERS_OF_HEADERS = (
    "cpp/state/paged_kv_lineage.cpp",
    "cpp/program/ledger_store.cpp",
    "cpp/program/planning_session.cpp",
    "cpp/program/copy_polling.cpp",
)


@dataclass(frozen=True)
class MutatedTree:
    """`original` is never written. A folder of an earlier run is brought up to date, and only what differs is built."""

    original: Path
    folder: Path
    jobs: int

    @property
    def root(self) -> Path:
        return self.folder / "tree"

    @property
    def build_folder(self) -> Path:
        return self.folder / "build"

    def prepare(self) -> None:
        wanted = SourceTree.of_repository(self.original)
        for name in wanted.files:
            self.restore(name)
        self.root.joinpath("build").mkdir(exist_ok=True)
        self._run(
            [
                str(Path(sysconfig.get_path("scripts")) / "cmake"),
                f"-S{self.root}",
                f"-B{self.build_folder}",
                "-GNinja",
                f"-DCMAKE_MAKE_PROGRAM={_ninja()}",
                "-DCMAKE_BUILD_TYPE=Release",
                "-DCMAKE_CXX_FLAGS_RELEASE=-O1",
                "-DNINFER_TESTS=ON",
                "-DNINFER_PYTHON=OFF",
            ]
        )

    def restore(self, name: str) -> None:
        """The file as it is in the original; untouched where it is that already, so that nothing is built again."""
        source, copy = self.original / name, self.root / name
        if copy.is_file() and copy.read_bytes() == source.read_bytes():
            return
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")

    def build(self, *targets: str) -> str:
        """What the compiler says if it refuses; empty if the targets are built."""
        command = [_ninja(), "-C", str(self.build_folder), f"-j{self.jobs}", *targets]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return "" if done.returncode == 0 else done.stdout[-4000:] + done.stderr[-1000:]

    def compiles(self, name: str, text: str) -> bool:
        """Whether the file may say this; it says afterwards what it said before."""
        path = self.root / name
        before = path.read_text(encoding="utf-8")
        users = _USERS_OF_HEADERS if name.endswith(".h") else (name,)
        command = ["c++", "-std=c++20", "-fsyntax-only", "-w", f"-I{self.root}"]
        path.write_text(text, encoding="utf-8")
        try:
            answers = (
                subprocess.run([*command, user], cwd=self.root, capture_output=True, check=False) for user in users
            )
            return all(answer.returncode == 0 for answer in answers)
        finally:
            path.write_text(before, encoding="utf-8")

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def _ninja() -> str:
    beside = Path(sysconfig.get_path("scripts")) / "ninja"
    found = str(beside) if beside.is_file() else shutil.which("ninja")
    assert found, f"no ninja beside {sys.executable} nor in PATH"
    return found
