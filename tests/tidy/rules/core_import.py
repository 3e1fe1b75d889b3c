"""Only python/ninfer/native.py imports the extension module, so that one file says what Python may ask of C++."""

from __future__ import annotations

import ast

from tests.tidy.source_tree import Finding, SourceTree

_HOME = "python/ninfer/native.py"
_GENERATOR = "tests/tidy/make_stub.py"


def check(tree: SourceTree) -> list[Finding]:
    found: list[Finding] = []
    for name in tree.python_files():
        if name in (_HOME, _GENERATOR):
            continue
        nodes = ast.walk(ast.parse(tree.text(name), filename=name))
        imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) and _imports_core(node)]
        found += [Finding(name, node.lineno, "only native.py imports _core") for node in imports]
    return found


def _imports_core(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.Import):
        return any("_core" in alias.name.split(".") and alias.name.startswith("ninfer") for alias in node.names)
    module = (node.module or "").split(".")
    ours = node.level > 0 or module[0] == "ninfer"
    return ours and ("_core" in module or any(alias.name == "_core" for alias in node.names))
