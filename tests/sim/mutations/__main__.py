"""Damages a copy of the sources in many ways, and asks for each whether a test sees it.

`python -m tests.sim.mutations --report FILE`; see README.md beside this file. The exit code is 0 if every hand-made
fault and at least 90 % of the generated mutants are killed, else 1.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.sim.mutations import report
from tests.sim.mutations.campaign import Judged, run_generated, run_hand_made
from tests.sim.mutations.hand_made_fault import read_faults
from tests.sim.mutations.mutated_tree import MutatedTree

ROOT = Path(__file__).resolve().parents[3]
# Not fresh: whoever reads a report must be able to find the mutants in it.
DEFAULT_SEED = 4


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    with tempfile.TemporaryDirectory(prefix="ninfer_mutations_") as fresh:
        tree = MutatedTree(ROOT, Path(options.work or fresh).resolve(), options.jobs)
        faults = [fault for fault in read_faults() if options.only in ("", "hand_made", fault.name, fault.group)]
        hand_made: list[Judged] = []
        generated: list[Judged] = []
        if faults:
            hand_made = _told(run_hand_made(tree, faults, options.seed, _say))
        if options.only in ("", "generated"):
            generated = _told(run_generated(tree, options.count, options.seed, _say))
    lines = [*report.table("Hand-made faults", hand_made), *report.table("Generated mutants", generated)]
    lines += [f"hand-made: {report.groups(hand_made)}", f"generated: {report.groups(generated)}"]
    if options.report:
        options.report.write_text("\n".join(lines) + "\n", encoding="utf-8")
    passed = report.passes(hand_made, generated)
    print("\n".join([*lines[-2:], "PASS" if passed else "FAIL"]))
    return 0 if passed else 1


def _told(results: Iterator[Judged]) -> list[Judged]:
    kept: list[Judged] = []
    for judged in results:
        _say(report.line(judged))
        kept.append(judged)
    return kept


def _say(text: str) -> None:
    print(text, flush=True)


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.mutations", description=__doc__)
    parser.add_argument("--report", type=Path, help="a Markdown file with one line per mutant")
    parser.add_argument("--only", default="", help="hand_made, generated, a rule group, or one fault's name")
    parser.add_argument("--count", type=int, default=100, help="how many mutants to generate")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help="of the generated mutants and of the killers")
    parser.add_argument("--work", type=Path, help="a folder to keep: what is built there is used again")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
