"""Runs clang-tidy on the product's C++: `python -m tests.runner.clang_tidy BUILD_FOLDER JOBS`.

A source that is compiled once per instruction set is judged once, as the baseline compiles it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
Entry = dict[str, str]


def baseline_entries(entries: list[Entry]) -> list[Entry]:
    """One entry of the compile database for each .cpp file under cpp/."""
    chosen: dict[str, Entry] = {}
    for entry in entries:
        path = (Path(entry["directory"]) / entry["file"]).resolve()
        if path.is_relative_to(ROOT / "cpp") and " -mavx" not in entry["command"]:
            chosen.setdefault(str(path), entry)
    return [chosen[path] for path in sorted(chosen)]


def judge(database: Path, source: str) -> str:
    """What clang-tidy says about one file; empty if nothing."""
    program = str(Path(sysconfig.get_path("scripts")) / "clang-tidy")
    # The flags in the database are GCC's; one that clang does not know is no finding.
    command = [program, "--quiet", "-p", str(database), "--extra-arg=-Wno-unknown-warning-option", source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def main(build: Path, jobs: int) -> int:
    entries = baseline_entries(json.loads((build / "compile_commands.json").read_text(encoding="utf-8")))
    assert entries, f"no source under {ROOT / 'cpp'} in {build}"
    database = build / "clang-tidy"
    database.mkdir(exist_ok=True)
    (database / "compile_commands.json").write_text(json.dumps(entries), encoding="utf-8")
    with ThreadPoolExecutor(jobs) as pool:
        answers = [text for text in pool.map(lambda entry: judge(database, entry["file"]), entries) if text]
    print("\n".join(answers))
    print(f"{len(entries)} files, {len(answers)} with findings")
    return 1 if answers else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
