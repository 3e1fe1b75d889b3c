"""Every rule holds for this repository."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tidy.rules import (
    core_import,
    dangling_references,
    foreign_trees,
    import_limits,
    include_directions,
    include_paths,
    machine_paths,
    module_names,
    size_limits,
    unfinished_markers,
)
from tests.tidy.source_tree import Finding, SourceTree

ROOT = Path(__file__).resolve().parents[2]
RULES = [
    core_import.check,
    dangling_references.check,
    foreign_trees.check,
    import_limits.check,
    include_directions.check,
    include_paths.check,
    machine_paths.check,
    module_names.check,
    size_limits.check,
    unfinished_markers.check,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__module__.rpartition(".")[2])
def test_repository_keeps_the_rule(rule: Callable[[SourceTree], list[Finding]]) -> None:
    found = rule(SourceTree.of_repository(ROOT))
    assert not found, "\n" + "\n".join(str(finding) for finding in found)


def test_every_rule_module_is_run() -> None:
    modules = {path.stem for path in (ROOT / "tests/tidy/rules").glob("*.py")} - {"__init__"}
    run_here = {rule.__module__.rpartition(".")[2] for rule in RULES}
    assert modules - run_here == {"isa_symbols"}  # judges a build tree: test_built_tree.py


def test_ratchet_only_ever_shrank() -> None:
    if not (ROOT / ".git").exists():
        assert size_limits.read_ratchet((ROOT / size_limits.RATCHET).read_text(encoding="utf-8")) == {}
        return
    versions = [*_committed_versions(), (ROOT / size_limits.RATCHET).read_text(encoding="utf-8")]
    ratchets = [size_limits.read_ratchet(version) for version in versions]
    for before, after in itertools.pairwise(ratchets):
        assert size_limits.loosened(before, after) == []


def _committed_versions() -> list[str]:
    """Every committed text of the ratchet list, oldest first."""
    log = ["git", "log", "--reverse", "--format=%H", "--", size_limits.RATCHET]
    commits = subprocess.run(log, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    show = [["git", "show", f"{commit}:{size_limits.RATCHET}"] for commit in commits]
    return [subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout for command in show]
