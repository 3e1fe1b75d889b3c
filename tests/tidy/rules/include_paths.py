"""An include line in quotes is the path of an existing file from the root of the repository."""

from __future__ import annotations

import re

from tests.tidy.source_tree import Finding, SourceTree

_INCLUDE = re.compile(r'^\s*#\s*include\s*(?P<open>["<])(?P<path>[^">]+)[">]')
_OURS = ("cpp/", "cuda/", "tests/", "bench/")


def check(tree: SourceTree) -> list[Finding]:
    found = []
    for name in tree.cpp_files():
        for number, line in tree.text_lines(name):
            match = _INCLUDE.match(line)
            if match is None:
                continue
            ours = match["path"].startswith(_OURS)
            if match["open"] == "<" and ours:
                found.append(Finding(name, number, f"a file of this repository is included in quotes: {match['path']}"))
            if match["open"] == '"' and match["path"] not in tree.file_set:
                found.append(Finding(name, number, f"no file {match['path']} from the root of the repository"))
    return found
