"""Python packages that must not know certain others, although these lie below them.

The layers themselves are import-linter's, in pyproject.toml. It refuses a contract about packages that do not exist
yet; this rule is there before they are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.tidy.source_tree import Finding, SourceTree

# agent and local run on machines without the engine; economics is pure; the planner sees native sessions as a protocol.
FORBIDDEN: dict[str, frozenset[str]] = {
    "agent": frozenset({"native", "engine", "serving"}),
    "local": frozenset({"native", "engine", "serving"}),
    "economics": frozenset({"native", "resources"}),
    "planner": frozenset({"native"}),
}
_PACKAGE = PurePosixPath("python/ninfer")


def check(tree: SourceTree) -> list[Finding]:
    found = []
    for folder, forbidden in FORBIDDEN.items():
        for name in tree.python_files(f"{_PACKAGE}/{folder}"):
            for line, module in imported_modules(tree.text(name), PurePosixPath(name)):
                if module in forbidden:
                    found.append(Finding(name, line, f"{folder} may not import {module}"))
    return found


def imported_modules(text: str, name: PurePosixPath) -> Iterator[tuple[int, str]]:
    """Line and first-level module of ninfer (`engine` for `ninfer.engine.request`) of every import of the file."""
    parents = name.relative_to(_PACKAGE.parent).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(text, filename=str(name))):
        if isinstance(node, ast.Import):
            targets = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = parents[: len(parents) - node.level + 1] if node.level else ()
            module = [*start, *(node.module or "").split(".")] if node.module else [*start]
            targets = [[*module, alias.name] for alias in node.names]
        else:
            continue
        yield from ((node.lineno, target[1]) for target in targets if target[0] == "ninfer" and len(target) > 1)
