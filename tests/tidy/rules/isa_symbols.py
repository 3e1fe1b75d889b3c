"""An object compiled for a newer instruction set exports no weak symbol.

The linker keeps one copy of a weak symbol (an inline function, a template, an inline variable) out of all objects that
have it. If it keeps the copy that was compiled for AVX-512, every caller gets AVX-512 code, also on a CPU without it.
So these objects hold only local functions and the entry points that the run-time choice guards.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.tidy.source_tree import Finding

_NEWER_ISA = re.compile(r"(_|\b)(avx2|avx512|avx10|amx|vnni|fma)", re.IGNORECASE)
# W and V: defined weak; u: unique global. The lower-case w and v are references that this object does not define.
_WEAK_TYPES = frozenset("WVu")


def is_newer_isa(path: Path) -> bool:
    """Whether a source or object is compiled for more than the baseline: its name says so."""
    return _NEWER_ISA.search(path.name) is not None


def isa_objects(build: Path) -> list[Path]:
    """The objects under a build folder that were compiled for more than the baseline."""
    return sorted(path for path in build.rglob("*.o") if is_newer_isa(path))


def check(build: Path) -> list[Finding]:
    found = []
    for path in isa_objects(build):
        listed = subprocess.run(["nm", "-C", str(path)], check=True, capture_output=True, text=True).stdout
        for line in listed.splitlines():
            kind, _, symbol = line[17:].partition(" ")
            if kind in _WEAK_TYPES:
                found.append(Finding(path.relative_to(build).as_posix(), 0, f"exports the weak symbol {symbol}"))
    return found
