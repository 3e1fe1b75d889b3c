"""Faults that somebody made by hand from the rules and the sources, without having seen a test."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "hand_made"


@dataclass(frozen=True)
class HandMadeFault:
    """`rule` is a number of docs/design: group and number. The patch is one that `git apply` takes."""

    name: str
    rule: str
    fault: str
    patch: Path
    files: tuple[str, ...]

    @property
    def group(self) -> str:
        return self.rule[0]


def read_faults(folder: Path = FOLDER) -> list[HandMadeFault]:
    return [_read(patch) for patch in sorted(folder.glob("*.patch"))]


def _read(patch: Path) -> HandMadeFault:
    text = patch.read_text(encoding="utf-8")
    head = re.match(r"Rule: ([PSIRTM]\d+)\nFault: (.+)\n\n", text)
    assert head, f"{patch.name} does not begin with its rule and its fault"
    return HandMadeFault(patch.stem, head[1], head[2], patch, tuple(re.findall(r"(?m)^\+\+\+ b/(.+)$", text)))


def apply(fault: HandMadeFault, root: Path, *options: str) -> None:
    """Changes the tree at `root`, or only asks (--check). Raises CalledProcessError if the patch does not fit."""
    # A tree inside of another repository is not a part of it.
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(root.parent)}
    command = ["git", "apply", *options, str(fault.patch)]
    subprocess.run(command, cwd=root, env=environment, check=True, capture_output=True, text=True)
