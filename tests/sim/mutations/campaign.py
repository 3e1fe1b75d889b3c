"""Runs every mutant against the killers.

Hand-made faults: each is applied to the copy, only what the next killer needs is built, and the copy is restored.
Generated mutants: all of them are in one copy, which is built once; a number in the environment says which is alive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tests.sim.mutations import schemata
from tests.sim.mutations.hand_made_fault import HandMadeFault, apply
from tests.sim.mutations.killers import Killer, Verdict, all_killers, judge, measured
from tests.sim.mutations.mutated_tree import MutatedTree
from tests.sim.mutations.places import Mutant

Say = Callable[[str], None]


@dataclass(frozen=True)
class Judged:
    """One mutant and what became of it. `group` is the rule group of a fault, or the kind of a generated mutant."""

    name: str
    group: str
    what: str
    verdict: Verdict


def run_hand_made(tree: MutatedTree, faults: Sequence[HandMadeFault], seed: int, say: Say) -> Iterator[Judged]:
    tree.prepare()
    killers = _built_and_measured(tree, seed, say)
    for fault in faults:
        apply(fault, tree.root)
        try:
            verdict = judge(killers, tree.build_folder, seed, 0, lambda killer: _build(tree, killer.target))
        finally:
            for name in fault.files:
                tree.restore(name)
        yield Judged(fault.name, fault.group, f"{fault.rule}: {fault.fault}", verdict)


def run_generated(tree: MutatedTree, count: int, seed: int, say: Say) -> Iterator[Judged]:
    tree.prepare()
    mutants = schemata.choose(tree.original, count, seed, lambda mutant: _compiles(tree, mutant))
    say(f"{len(mutants)} mutants of {len(schemata.candidates(tree.original))} candidates, seed {seed}")
    for name, of_file in schemata.by_file(mutants).items():
        text = (tree.original / name).read_text(encoding="utf-8")
        tree.write(name, schemata.instrumented(text, of_file))
    killers = _built_and_measured(tree, seed, say)

    def judged(number: int) -> Judged:
        mutant = mutants[number]
        verdict = judge(killers, tree.build_folder, seed, number, lambda killer: None)
        return Judged(f"{number}", mutant.kind, f"{mutant.path}:{mutant.line}: {mutant.change}", verdict)

    with ThreadPoolExecutor(tree.jobs) as pool:
        yield from pool.map(judged, mutants)


def _compiles(tree: MutatedTree, mutant: Mutant) -> bool:
    text = (tree.original / mutant.path).read_text(encoding="utf-8")
    return tree.compiles(mutant.path, schemata.instrumented(text, {1: mutant}))


def _built_and_measured(tree: MutatedTree, seed: int, say: Say) -> list[Killer]:
    killers = all_killers(tree.original, seed)
    _build(tree, *{killer.target for killer in killers})
    killers = measured(killers, tree.build_folder, seed)
    say(f"{len(killers)} killers, {sum(killer.seconds for killer in killers):.0f} s without a mutant")
    return killers


def _build(tree: MutatedTree, *targets: str) -> None:
    answer = tree.build(*targets)
    assert not answer, answer
