"""The end of a run: a table of the stages and one line that counts them."""

from __future__ import annotations

from collections.abc import Mapping

from tests.runner.stage import Outcome


def closing_lines(outcomes: Mapping[str, Outcome]) -> list[str]:
    lines = ["", f"{'stage':14} {'seconds':>8}  result"]
    for name, outcome in outcomes.items():
        word = "passed" if outcome.passed else "FAILED"
        lines.append(f"{name:14} {outcome.seconds:8.1f}  {word} {outcome.remark}".rstrip())
    total = sum(outcome.seconds for outcome in outcomes.values())
    passed = sum(outcome.passed for outcome in outcomes.values())
    return [*lines, f"{'total':14} {total:8.1f}", f"{passed} passed, {len(outcomes) - passed} failed"]
