"""C++ includes point down: a folder of cpp/ includes only the folders below it, and never cuda/."""

from __future__ import annotations

import re

from tests.tidy.source_tree import Finding, SourceTree

# Folder -> folders that it may include besides itself. Everything may include base. A new folder of cpp/ is added here
# together with its library in CMakeLists.txt, whose link lines say the same.
_BASICS = frozenset({"base", "tensor", "memory"})
_COMPUTE = _BASICS | {"ops", "weights", "backend"}
ALLOWED: dict[str, frozenset[str]] = {
    "base": frozenset(),
    "tensor": frozenset({"base"}),
    "memory": frozenset({"base", "tensor"}),
    "ops": _BASICS,
    "weights": _BASICS,
    "state": _BASICS,
    "backend": _BASICS | {"ops"},
    "model": _COMPUTE | {"state"},
    "snapshot": _BASICS | {"state"},
    "transaction": _BASICS | {"state"},
    "program": _COMPUTE | {"state", "model", "snapshot", "transaction"},
    "bindings": _COMPUTE | {"state", "model", "snapshot", "transaction", "program"},
}
_INCLUDE = re.compile(r'^\s*#\s*include\s*"(?P<path>[^"]+)"')


def check(tree: SourceTree) -> list[Finding]:
    found = []
    for name in tree.cpp_files("cpp"):
        folder = _folder_of(name)
        if folder not in ALLOWED:
            found.append(Finding(name, 0, f"cpp/{folder} has no place in the include directions"))
            continue
        for number, line in tree.text_lines(name):
            match = _INCLUDE.match(line)
            if match and (message := _judge(folder, match["path"])):
                found.append(Finding(name, number, message))
    return found


def _folder_of(name: str) -> str:
    parts = name.split("/")
    return parts[1] if len(parts) > 2 else ""


def _judge(folder: str, included: str) -> str | None:
    if included.startswith("cpp/"):
        target = _folder_of(included)
        legal = target == folder or target in ALLOWED[folder]
        return None if legal else f"cpp/{folder} may not include cpp/{target}"
    return f"cpp may not include {included}"
