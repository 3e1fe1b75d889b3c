"""A file is named after the one thing in it: names that could hold anything are refused."""

from __future__ import annotations

from pathlib import Path

from tests.tidy.source_tree import Finding, SourceTree

_VAGUE = frozenset({"utils", "util", "helpers", "helper", "common", "misc", "stuff", "tools", "base", "shared"})
# The source tree has these folders; files and other folders may not take the name.
_FOLDERS_OF_THE_TREE = frozenset({"cpp/base", "cuda/base", "tests/cpp/base", "tests/cuda/base", "bench/base"})
_SUFFIXES = frozenset({".h", ".cpp", ".cu", ".cuh", ".py"})


def check(tree: SourceTree) -> list[Finding]:
    found = []
    for name in tree.files:
        path = Path(name)
        if path.suffix not in _SUFFIXES:
            continue
        folders = [parent for parent in path.parents if parent.name in _VAGUE]
        bad_folder = any(folder.as_posix() not in _FOLDERS_OF_THE_TREE for folder in folders)
        if bad_folder or _is_vague(path.stem):
            found.append(Finding(name, 0, "the name does not say what is inside"))
    return found


def _is_vague(stem: str) -> bool:
    bare = stem.removeprefix("test_").removeprefix("bind_").removesuffix("_test").removesuffix("_bench")
    return bare in _VAGUE or bare.endswith(("_utils", "_helpers", "_misc"))
