"""Nothing in the tree refers to a document that is not in the tree: its reader could not follow."""

from __future__ import annotations

import re

from tests.tidy.source_tree import Finding, SourceTree

# Documents the project was planned with. Written in halves, so that this file does not find itself.
_DOCUMENTS = (
    r"decisions? D-" + r"\d",
    "physical" + "-core",
    "context" + "-policy",
    "quality" + r"\.md",
    "serving" + r"[- ]contract",
    "style " + "guide",
)
_PATTERN = re.compile("|".join(_DOCUMENTS))
# A rule of the numerics page, by number: the page must have it.
_NUMBERED_RULE = re.compile(r"\b([NX]-?\d+) of (docs/[\w/]+\.md)")
_FOREIGN_WORDS = ("python/ninfer/demo/", "tests/python/frontend/data/")


def check(tree: SourceTree) -> list[Finding]:
    found = []
    for name in tree.files:
        if name.startswith(_FOREIGN_WORDS):
            continue
        for number, line in tree.text_lines(name):
            if (match := _PATTERN.search(line)) and not _is_here(tree, match[0]):
                found.append(Finding(name, number, f"refers to a document that is not here: {match[0]}"))
            for rule, page in _NUMBERED_RULE.findall(line):
                if page not in tree.file_set or not re.search(rf"\b{rule}\b", tree.text(page)):
                    found.append(Finding(name, number, f"{page} has no rule {rule}"))
    return found


def _is_here(tree: SourceTree, document: str) -> bool:
    """Whether a page of docs/ has that name, so that the reference can be followed."""
    stem = document.removesuffix(".md").replace(" ", "-").replace("-", "_").lower()
    return any(name.startswith("docs/") and name.endswith(f"/{stem}.md") for name in tree.files)
