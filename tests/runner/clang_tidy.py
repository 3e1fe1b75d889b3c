"""Runs clang-tidy on the product's C++: `python -m tests.runner.clang_tidy BUILD_FOLDER JOBS`.

The sources of newer instruction sets are left out: they repeat one source per instruction set.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.tidy.rules.isa_symbols import is_newer_isa

ROOT = Path(__file__).resolve().parents[2]


def sources(build: Path) -> list[Path]:
    """The .cpp files under cpp/ that the build compiles for the baseline."""
    entries = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    paths = {(Path(entry["directory"]) / entry["file"]).resolve() for entry in entries}
    ours = {path for path in paths if path.is_relative_to(ROOT / "cpp") and path.suffix == ".cpp"}
    return sorted(path for path in ours if not is_newer_isa(path))


def judge(build: Path, source: Path) -> str:
    """What clang-tidy says about one file; empty if nothing."""
    program = str(Path(sysconfig.get_path("scripts")) / "clang-tidy")
    # The flags in the database are GCC's; one that clang does not know is no finding.
    command = [program, "--quiet", "-p", str(build), "--extra-arg=-Wno-unknown-warning-option", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def main(build: Path, jobs: int) -> int:
    chosen = sources(build)
    assert chosen, f"no source under {ROOT / 'cpp'} in {build}"
    with ThreadPoolExecutor(jobs) as pool:
        answers = [answer for answer in pool.map(lambda source: judge(build, source), chosen) if answer]
    print("\n".join(answers))
    print(f"{len(chosen)} files, {len(answers)} with findings")
    return 1 if answers else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
