"""Mutants that are chosen by a seed, and the one instrumented copy of the sources in which all of them sleep."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.sim.mutations.cpp_text import CppText
from tests.sim.mutations.places import Insertion, Mutant, mutants_of

SWITCH = '#include "tests/sim/mutations/mutation_switch.h"\n'
FOLDERS = ("cpp/state", "cpp/transaction", "cpp/program")
# Assertions alone, or a model's units: the simulator links no code of these.
LEFT_OUT = (
    "cpp/program/model_units.cpp",
    "cpp/program/model_units.h",
    "cpp/program/pending_batch.h",
    "cpp/program/program.cpp",
    "cpp/program/program.h",
    "cpp/program/program_options.h",
    "cpp/program/program_statistics.h",
    "cpp/state/fingerprint.h",
    "cpp/transaction/resource_target.cpp",
)


def sources(root: Path) -> list[str]:
    """The files that may be mutated, relative to the root."""
    found = [path for folder in FOLDERS for path in (root / folder).iterdir() if path.suffix in (".cpp", ".h")]
    names = sorted(path.relative_to(root).as_posix() for path in found)
    return [name for name in names if name not in LEFT_OUT and not name.endswith("_checks.cpp")]


def candidates(root: Path) -> list[Mutant]:
    """Every mutant of every source, in their order."""
    return [mutant for name in sources(root) for mutant in mutants_of(CppText(name, (root / name).read_text("utf-8")))]


def choose(root: Path, count: int, seed: int, compiles: Callable[[Mutant], bool]) -> dict[int, Mutant]:
    """`count` of all candidates, numbered from 1. One that does not compile is left out, and the next one drawn."""
    drawn = candidates(root)
    random.Random(seed).shuffle(drawn)
    chosen: list[Mutant] = []
    for mutant in drawn:
        if len(chosen) == count:
            break
        if not any(overlap(mutant, other) for other in chosen) and compiles(mutant):
            chosen.append(mutant)
    return dict(enumerate(chosen, start=1))


def instrumented(text: str, mutants: Mapping[int, Mutant]) -> str:
    """The text of one source with these mutants of it in it."""
    placed = [(number, insertion) for number, mutant in mutants.items() for insertion in mutant.insertions]
    # What closes something comes before what opens there, and what reaches farther opens first.
    placed.sort(key=lambda item: (item[1].offset, *_rank(item[1])))
    pieces: list[str] = []
    done = 0
    for number, insertion in placed:
        pieces += [text[done : insertion.offset], insertion.text.format(n=number)]
        done = max(done, insertion.offset, insertion.end)
    whole = "".join([*pieces, text[done:]])
    if whole.startswith("#pragma once\n"):
        return whole.replace("#pragma once\n", "#pragma once\n" + SWITCH, 1)
    return SWITCH + whole


def _rank(insertion: Insertion) -> tuple[int, int]:
    if insertion.end >= 0:
        return 2, 0
    return (1, -insertion.reaches) if insertion.reaches else (0, 0)


def by_file(mutants: Mapping[int, Mutant]) -> dict[str, dict[int, Mutant]]:
    files: dict[str, dict[int, Mutant]] = defaultdict(dict)
    for number, mutant in mutants.items():
        files[mutant.path][number] = mutant
    return dict(files)


def overlap(left: Mutant, right: Mutant) -> bool:
    """Whether both replace the same text, so that only one of them can be in a copy."""
    if left.path != right.path:
        return False
    return any(
        one.end >= 0 and other.end >= 0 and one.offset < other.end and other.offset < one.end
        for one in left.insertions
        for other in right.insertions
    )
