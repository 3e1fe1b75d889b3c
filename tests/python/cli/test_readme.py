"""What the README tells to type works, exactly as it stands there: its blocks are run, only the port is another."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fixtures.ninfer_server import SECONDS, free_port, ninfer_serve

ROOT = Path(__file__).resolve().parents[3]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS, OUTPUTS = ("sh", "python"), ("text", "json")
# Run as the server that the others ask.
SERVER = "ninfer-serve --demo\n"
# Both begin with installing; the runner of all checks does what they say.
INSTALLING = "python3 -m venv .venv && . .venv/bin/activate && pip install "


@dataclass(frozen=True)
class Example:
    """expected: a part of the output, from the block behind it; empty if there is none."""

    language: str
    text: str
    expected: str


def examples() -> list[Example]:
    blocks = [(match[1], match[2]) for match in BLOCK.finditer((ROOT / "README.md").read_text("utf-8"))]
    assert {language for language, _ in blocks} <= {*COMMANDS, *OUTPUTS}
    found = []
    for index, (language, text) in enumerate(blocks):
        if language in COMMANDS:
            following = blocks[index + 1] if index + 1 < len(blocks) else ("", "")
            found.append(Example(language, text, following[1].strip() if following[0] in OUTPUTS else ""))
    return found


ASKING = [one for one in examples() if one.text != SERVER and not one.text.startswith(INSTALLING)]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A PATH on which the commands are those of the package under test, installed or not."""
    folder = tmp_path_factory.mktemp("bin")
    for name, entry in (("ninfer", "main"), ("ninfer-serve", "serve")):
        script = folder / name
        script.write_text(f"#!{sys.executable}\nfrom ninfer.cli import {entry}\n{entry}()\n", encoding="utf-8")
        script.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture(scope="module")
def port(path: str) -> Iterator[int]:
    port = free_port()
    # As it stands there; the port comes from the variable that the page of the command line names.
    command = ["bash", "-c", f"exec {SERVER}"]
    with ninfer_serve(command=command, environment={"NINFER_PORT": str(port), "PATH": path}) as server:
        assert server.url() == f"http://127.0.0.1:{port}"
        yield port
        assert server.stop() == 0


def test_every_block_is_run_by_somebody() -> None:
    texts = [one.text for one in examples()]
    assert texts.count(SERVER) == 1
    assert [one.language for one in ASKING] == ["sh", "python", "sh", "python", "sh"]
    assert [bool(one.expected) for one in ASKING] == [True] * 5
    assert "listening on http://127.0.0.1:8080" in (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize("example", ASKING, ids=lambda one: one.text.split()[0])
def test_an_example_prints_what_stands_behind_it(example: Example, port: int, path: str) -> None:
    command = ["bash", "-ec"] if example.language == "sh" else [sys.executable, "-c"]
    result = subprocess.run(
        [*command, example.text.replace("8080", str(port))],
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
        env={**os.environ, "PATH": path},
    )
    assert result.returncode == 0, result.stderr
    assert example.expected in result.stdout
