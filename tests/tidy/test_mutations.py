"""The faults made by hand fit this tree, and generated mutants do what they say (tests/sim/mutations)."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.sim.mutations import schemata
from tests.sim.mutations.cpp_text import CppText
from tests.sim.mutations.hand_made_fault import HandMadeFault, apply, read_faults
from tests.sim.mutations.places import Mutant, mutants_of

ROOT = Path(__file__).resolve().parents[2]
# Every kind of mutant, and for each an input on which it answers otherwise.
SAMPLE = """\
#include <algorithm>
#include <cstdio>

// A comment with a < b && c is no code, nor is a "text + 1".
bool inside(int value, int low, int high) { return low <= value && value < high; }

int longest(int left, int right, bool both) {
    int count = 0;
    if (both || left > right) {
        count += left;
    }
    if (left != right) count = count + std::max(left, right) - 1;
    return count;
}

bool known(int value) {
    if (value == 7) return true;
    return false;
}

int main() {
    NINFER_ASSERT(1 < 2, "an assertion is not touched");
    for (int a = -1; a <= 8; ++a)
        for (int b = -1; b <= 8; ++b)
            std::printf("%d %d %d %d|", inside(a, b, 5), longest(a, b, a > 4), longest(a, b, false), known(a));
    std::printf("%s", "");
}
"""


@pytest.mark.parametrize("fault", read_faults(), ids=lambda fault: fault.name)
def test_fault_applies_to_this_tree(fault: HandMadeFault) -> None:
    assert fault.files
    assert all(name.startswith("cpp/") for name in fault.files)
    apply(fault, ROOT, "--check")


def test_every_rule_group_has_faults() -> None:
    groups = Counter(fault.group for fault in read_faults())
    assert set(groups) == set("PSIRTM")
    assert min(groups.values()) >= 2


def test_a_mutant_changes_the_answer_only_while_it_is_alive(tmp_path: Path) -> None:
    code = SAMPLE.partition("int main")[0]
    mutants = [mutant for mutant in mutants_of(CppText("sample.cpp", SAMPLE)) if mutant.line <= code.count("\n")]
    assert {mutant.kind for mutant in mutants} == {
        "arithmetic",
        "condition",
        "constant",
        "extreme",
        "literal",
        "logical",
        "relation",
        "statement",
    }
    together = _without_overlaps(mutants)
    program = _compiled(tmp_path, schemata.instrumented(SAMPLE, together))
    sound = _output(program, 0)
    assert sound == _output(_compiled(tmp_path, SAMPLE), 0)
    asleep = [str(mutant) for number, mutant in together.items() if _output(program, number) == sound]
    assert not asleep


def test_nothing_is_made_of_assertions_and_comments() -> None:
    lines = {mutant.line for mutant in mutants_of(CppText("sample.cpp", SAMPLE))}
    comment, assertion = (
        SAMPLE.splitlines().index(line) + 1
        for line in SAMPLE.splitlines()
        if "not touched" in line or "no code" in line
    )
    assert not lines & {comment, assertion}


def test_the_choice_follows_the_seed_and_leaves_out_what_does_not_compile() -> None:
    first, again, other = (schemata.choose(ROOT, 20, seed, lambda mutant: True) for seed in (1, 1, 2))
    assert first == again != other
    fewer = schemata.choose(ROOT, 20, 1, lambda mutant: mutant.kind != "literal")
    assert len(fewer) == 20
    assert "literal" not in {mutant.kind for mutant in fewer.values()}


def _without_overlaps(mutants: list[Mutant]) -> dict[int, Mutant]:
    kept: list[Mutant] = []
    for mutant in mutants:
        if not any(schemata.overlap(mutant, other) for other in kept):
            kept.append(mutant)
    return dict(enumerate(kept, start=1))


def _compiled(folder: Path, text: str) -> Path:
    source, program = folder / "sample.cpp", folder / f"sample_{abs(hash(text))}"
    source.write_text(text, encoding="utf-8")
    flags = ["-std=c++20", "-w", f"-I{ROOT}", "-DNINFER_ASSERT(condition, text)=((void)0)"]
    subprocess.run(["c++", *flags, str(source), "-o", str(program)], check=True)
    return program


def _output(program: Path, mutant: int) -> str:
    environment = {**os.environ, "NINFER_MUTANT": str(mutant)}
    return subprocess.run([str(program)], env=environment, check=True, capture_output=True, text=True).stdout
