"""Files, functions and parameter lists stay short.

What was too long when a limit came is listed in ratchet.json and may only shrink.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator

from tests.tidy.cpp_functions import cpp_functions
from tests.tidy.source_tree import Finding, SourceTree

RATCHET = "tests/tidy/ratchet.json"
CPP_FILE_LINES = 400
PYTHON_FILE_LINES = 300
FUNCTION_LINES = 70
KERNEL_LINES = 120
PARAMETERS = 6
_KERNEL_FOLDERS = ("cpp/ops/cpu/", "cuda/ops/", "cuda/device/")
# One option of the command line is one parameter of its function: the library that reads them wants it so.
_COMMAND_FOLDERS = ("python/ninfer/cli/",)


def check(tree: SourceTree) -> list[Finding]:
    ratchet = read_ratchet(tree.text(RATCHET)) if RATCHET in tree.file_set else {}
    found = []
    measured: set[str] = set()
    for key, line, size, limit in _sizes(tree):
        allowed = ratchet.get(key)
        measured.add(key)
        if allowed is None and size > limit:
            found.append(Finding(key.split("::")[0], line, f"{key}: {size} is over the limit of {limit}"))
        elif allowed is not None and size > allowed:
            found.append(Finding(key.split("::")[0], line, f"{key}: {size} is over its ratchet of {allowed}"))
        elif allowed is not None and size < allowed:
            wanted = f"lower it to {size}" if size > limit else "remove it"
            found.append(Finding(RATCHET, 0, f"{key}: the ratchet of {allowed} is no longer needed: {wanted}"))
    gone = sorted(set(ratchet) - measured)
    return found + [Finding(RATCHET, 0, f"{key}: no such file or function: remove it") for key in gone]


def read_ratchet(text: str) -> dict[str, int]:
    return {str(key): int(value) for key, value in json.loads(text).items()}


def loosened(before: dict[str, int], after: dict[str, int]) -> list[str]:
    """What a change of the ratchet list made looser; empty if it only shrank."""
    return sorted(key for key, value in after.items() if key not in before or value > before[key])


def _sizes(tree: SourceTree) -> Iterator[tuple[str, int, int, int]]:
    """Key, line, size and limit of everything that has a limit. Several functions of one name share a key: the largest
    counts."""
    largest: dict[str, tuple[int, int, int]] = {}
    for key, line, size, limit in (*_cpp_sizes(tree), *_python_sizes(tree)):
        if key not in largest or size > largest[key][1]:
            largest[key] = (line, size, limit)
    for key, (line, size, limit) in largest.items():
        yield key, line, size, limit


def _cpp_sizes(tree: SourceTree) -> Iterator[tuple[str, int, int, int]]:
    for name in tree.cpp_files():
        text = tree.text(name)
        yield name, 0, text.count("\n"), CPP_FILE_LINES
        body_limit = KERNEL_LINES if name.startswith(_KERNEL_FOLDERS) else FUNCTION_LINES
        for function in cpp_functions(text):
            key = f"{name}::{function.name}"
            yield f"{key}::lines", function.first_line, function.lines, body_limit
            yield f"{key}::parameters", function.first_line, function.parameters, PARAMETERS


def _python_sizes(tree: SourceTree) -> Iterator[tuple[str, int, int, int]]:
    for name in tree.python_files():
        text = tree.text(name)
        if not name.endswith("/wire.py"):
            yield name, 0, text.count("\n"), PYTHON_FILE_LINES
        for node in ast.walk(ast.parse(text, filename=name)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                key = f"{name}::{node.name}"
                yield f"{key}::lines", node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1, FUNCTION_LINES
                if not name.startswith(_COMMAND_FOLDERS):
                    yield f"{key}::parameters", node.lineno, _parameters(node.args), PARAMETERS


def _parameters(arguments: ast.arguments) -> int:
    named = [*arguments.posonlyargs, *arguments.args]
    bound = bool(named) and named[0].arg in ("self", "cls")
    return len(named) + len(arguments.kwonlyargs) - bound
