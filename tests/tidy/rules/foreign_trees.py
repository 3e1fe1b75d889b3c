"""No copy of another project lies in the tree: every line was written here, or comes as a declared dependency."""

from __future__ import annotations

from pathlib import Path

from tests.tidy.source_tree import Finding, SourceTree

_FOLDERS = frozenset(
    {"vendor", "vendored", "third_party", "thirdparty", "3rdparty", "external", "extern", "deps", "node_modules"}
)
_FILES = frozenset({".gitmodules"})
# Compiled or packed files hide their source. Model files of the demo and of fixtures are data with a stated origin.
_BINARY_SUFFIXES = frozenset(
    {".a", ".o", ".so", ".dll", ".dylib", ".whl", ".zip", ".gz", ".xz", ".tar", ".exe", ".jar"}
)


def check(tree: SourceTree) -> list[Finding]:
    found = []
    for name in tree.files:
        path = Path(name)
        if _FOLDERS.intersection(path.parts[:-1]) or path.name in _FILES:
            found.append(Finding(name, 0, "looks like a copy of another project"))
        elif path.suffix in _BINARY_SUFFIXES:
            found.append(Finding(name, 0, "compiled or packed files do not belong in the tree"))
    return found
