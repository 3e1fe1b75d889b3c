"""No marker of unfinished work stays in the tree: open work is an issue, a limit is a sentence in docs/status.md."""

from __future__ import annotations

import re

from tests.tidy.source_tree import Finding, SourceTree

# Written in halves, so that this file does not find itself.
_MARKERS = ("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK", "W" + "IP", "raise " + "NotImplementedError")
_PATTERN = re.compile(r"\b(" + "|".join(_MARKERS) + r")\b")
_SUFFIXES = (".h", ".cpp", ".cu", ".cuh", ".py", ".pyi", ".md", ".txt", ".toml", ".cmake", ".json", ".yaml")
_FOREIGN_WORDS = ("python/ninfer/demo/", "tests/fixtures/")


def check(tree: SourceTree) -> list[Finding]:
    found = []
    for name in tree.files:
        if not name.endswith(_SUFFIXES) or name.startswith(_FOREIGN_WORDS):
            continue
        for number, line in tree.text_lines(name):
            if match := _PATTERN.search(line):
                found.append(Finding(name, number, f"unfinished work is marked: {match[0]}"))
    return found
