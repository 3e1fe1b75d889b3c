"""The command line of the runner."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from pathlib import Path

from tests.runner import debian_packages
from tests.runner.report import closing_lines
from tests.runner.settings import TIERS, Settings
from tests.runner.stage import Outcome, run_stage
from tests.runner.stages import STAGES, of_tier, with_needs

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    if options.list:
        for stage in STAGES:
            print(f"{stage.name:14} {stage.purpose}")
        return 0
    if not debian_packages.ready(install=options.setup):
        return 2
    settings = Settings(ROOT, tier=options.tier, seed=options.seed, jobs=os.cpu_count() or 1)
    print(
        f"tier {settings.tier}, seed {settings.seed} (repeat with --seed {settings.seed}), {settings.jobs} jobs",
        flush=True,
    )
    outcomes: dict[str, Outcome] = {}
    for stage in with_needs(options.only) if options.only else of_tier(settings.tier):
        outcomes[stage.name] = run_stage(stage, settings, outcomes)
    print("\n".join(closing_lines(outcomes)))
    return 0 if all(outcome.passed for outcome in outcomes.values()) else 1


def _parse(arguments: list[str]) -> argparse.Namespace:
    names = [stage.name for stage in STAGES]
    parser = argparse.ArgumentParser(prog="tests/run.py", description="Runs every check of the repository.")
    parser.add_argument("--setup", action="store_true", help="install the Debian packages that the checks need")
    parser.add_argument("--tier", choices=TIERS, default="ci", help="ci: at most 25 minutes on 2 cores")
    parser.add_argument("--only", action="append", choices=names, metavar="STAGE", help="this stage and what it needs")
    parser.add_argument("--list", action="store_true", help="print the stages and stop")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**32), help="repeat a run; default: a fresh one")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
