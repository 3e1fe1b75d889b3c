"""Nothing in the tree names a path of the machine that it was written on."""

from __future__ import annotations

import re

from tests.tidy.source_tree import Finding, SourceTree

# Written in halves, so that this file does not find itself.
_PREFIXES = ("/wo" + "rk/", "/ro" + "ot/", "/ho" + "me/", "/Us" + "ers/")
_PATTERN = re.compile(r"(?<![\w.\-$}/])(" + "|".join(_PREFIXES) + r")")


def check(tree: SourceTree) -> list[Finding]:
    found = []
    for name in tree.files:
        for number, line in tree.text_lines(name):
            if match := _PATTERN.search(line):
                found.append(Finding(name, number, f"a path of one machine: {match[0]}"))
    return found
