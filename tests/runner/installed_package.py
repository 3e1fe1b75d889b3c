"""Installs the package again if the installed one is older than this tree: tests never judge yesterday's code."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

from tests.tidy.source_tree import SourceTree

ROOT = Path(__file__).resolve().parents[2]
_NATIVE_SOURCES = ("cpp/", "cuda/", "CMakeLists.txt", "pyproject.toml")


def reason_to_install(root: Path, installed: Path | None) -> str:
    """What of the tree the installed package lacks; empty if nothing."""
    if installed is None:
        return "it is not installed"
    tree = SourceTree.of_repository(root)
    for name in tree.files:
        if name.startswith("python/ninfer/"):
            copy = installed / name.removeprefix("python/ninfer/")
            if not copy.is_file() or copy.read_bytes() != (root / name).read_bytes():
                return f"{name} differs"
    modules = list(installed.glob("_core*.so"))
    if not modules:
        return "it has no extension module"
    built = min(module.stat().st_mtime for module in modules)
    newer = [name for name in tree.files if name.startswith(_NATIVE_SOURCES) and _modified(root / name) > built]
    return f"{newer[0]} is newer than the extension module" if newer else ""


def _modified(path: Path) -> float:
    return path.stat().st_mtime


def _installed_folder() -> Path | None:
    found = importlib.util.find_spec("ninfer")
    return Path(found.origin).parent if found is not None and found.origin else None


def main() -> int:
    reason = reason_to_install(ROOT, _installed_folder())
    print(f"installing the package again: {reason}" if reason else "the installed package is this tree", flush=True)
    if not reason:
        return 0
    # Not isolated, and in a kept folder: only what changed is compiled. The test extra brings what a build needs.
    options = ["--no-deps", "--no-build-isolation", "--force-reinstall", "-Cbuild-dir=build/package"]
    return subprocess.run([sys.executable, "-m", "pip", "install", *options, "."], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
