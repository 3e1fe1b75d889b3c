"""An object compiled for a newer instruction set exports no weak symbol that other objects could share.

The linker keeps one copy of a weak symbol (an inline function, a template, an inline variable) out of all objects that
have it. If it keeps the copy that was compiled for AVX-512, every caller gets AVX-512 code, also on a CPU without it.
A weak symbol whose name holds the namespace of its instruction set is shared with no other object and may stay.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.tidy.source_tree import Finding

# The object libraries of cpp/ops/CMakeLists.txt: ninfer_ops_avx2.dir, ninfer_ops_avx512.dir.
_NEWER_ISA = re.compile(r"_(?P<isa>avx\w*)\.dir/")
# W and V: defined weak; u: unique global. The lower-case w and v are references that this object does not define.
_WEAK_TYPES = frozenset("WVu")


def isa_objects(build: Path) -> list[tuple[Path, str]]:
    """The objects under a build folder that were compiled for more than the baseline, each with its instruction set."""
    named = ((path, _NEWER_ISA.search(path.as_posix())) for path in sorted(build.rglob("*.o")))
    return [(path, match["isa"]) for path, match in named if match]


def check(build: Path) -> list[Finding]:
    found = []
    for path, isa in isa_objects(build):
        listed = subprocess.run(["nm", "-C", str(path)], check=True, capture_output=True, text=True).stdout
        for line in listed.splitlines():
            kind, _, symbol = line[17:].partition(" ")
            if kind in _WEAK_TYPES and f"ninfer::{isa}::" not in symbol:
                found.append(Finding(path.relative_to(build).as_posix(), 0, f"exports the weak symbol {symbol}"))
    return found
