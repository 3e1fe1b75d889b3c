"""What is told about a run: one line per mutant, and the numbers at the end."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sim.mutations.campaign import Judged

LEAST_GENERATED_KILLED = 0.9


def line(judged: Judged) -> str:
    verdict = judged.verdict
    fate = f"{verdict.killed_by} ({verdict.how})" if verdict.killed else "SURVIVED"
    return f"| {judged.name} | {judged.what.replace('|', '&#124;')} | {fate.replace('|', '&#124;')} |"


def table(title: str, results: Sequence[Judged]) -> list[str]:
    rows = [line(judged) for judged in results]
    return [
        f"## {title}: {_killed(results)} of {len(results)} killed",
        "",
        "| | mutant | killed by |",
        "|---|---|---|",
        *rows,
        "",
    ]


def groups(results: Sequence[Judged]) -> str:
    names = sorted({judged.group for judged in results})
    counts = {name: [judged for judged in results if judged.group == name] for name in names}
    return ", ".join(f"{name} {_killed(of)}/{len(of)}" for name, of in counts.items())


def passes(hand_made: Sequence[Judged], generated: Sequence[Judged]) -> bool:
    """Whether every fault that was made by hand is found, and nearly all of the generated ones."""
    all_found = _killed(hand_made) == len(hand_made)
    return all_found and _killed(generated) >= LEAST_GENERATED_KILLED * len(generated)


def _killed(results: Sequence[Judged]) -> int:
    return sum(judged.verdict.killed for judged in results)
