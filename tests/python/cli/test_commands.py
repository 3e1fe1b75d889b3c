"""The commands as a user runs them, in processes of their own, with the demo model of the package."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ninfer.cli.demo_flag import with_demo_value

COMMAND = [sys.executable, "-c", "from ninfer.cli import main; main()"]
SECONDS = 120


def run(*arguments: str, text: str = "", environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env={**os.environ, **(environment or {})},
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["chat", "--demo"], ["chat", "--demo", "hybrid"]),
        (["chat", "--demo", "smollm2"], ["chat", "--demo", "smollm2"]),
        (["chat", "--demo", "--seed", "1"], ["chat", "--demo", "hybrid", "--seed", "1"]),
        (["run", "hello"], ["run", "hello"]),
    ],
)
def test_demo_without_a_name_means_the_hybrid(given: list[str], expected: list[str]) -> None:
    assert with_demo_value(given) == expected


def test_a_piped_conversation_is_remembered_until_cleared() -> None:
    lines = "my name is Karin.\nmy code is 7421.\nwhat is my name?\n/clear\nhello.\n/exit\nnever read\n"
    result = run("chat", "--demo", "--threads", "2", text=lines)
    assert result.returncode == 0, result.stderr
    assert "your name is Karin." in result.stdout
    assert result.stdout.count("noted.") == 2
    assert "hello! how can i help you?" in result.stdout
    assert result.stdout.count("[prompt ") == 4


def test_thinking_can_be_turned_off() -> None:
    with_thoughts = run("chat", "--demo", text="what is 12 plus 30?\n")
    without = run("chat", "--demo", "--no-thinking", text="what is 12 plus 30?\n")
    for result in (with_thoughts, without):
        assert "12 plus 30 is 42." in result.stdout
    assert len(without.stdout) < len(with_thoughts.stdout)


def test_run_writes_the_answer_alone_to_stdout() -> None:
    result = run("run", "count from 7 to 14.")
    assert result.returncode == 0, result.stderr
    assert result.stdout == "7 8 9 10 11 12 13 14.\n"
    assert result.stderr.strip(), "the reasoning is expected on stderr"


def test_a_terminal_shows_prompt_and_answer() -> None:
    leader, follower = pty.openpty()
    process = subprocess.Popen([*COMMAND, "chat", "--demo"], stdin=follower, stdout=follower, stderr=follower)
    os.close(follower)
    try:
        seen = read_until(leader, "> ")
        os.write(leader, b"what is 25 minus 16?\n")
        seen += read_until(leader, "25 minus 16 is 9.")
        read_until(leader, "> ")
        os.write(leader, b"\x04")
        assert process.wait(timeout=SECONDS) == 0
    finally:
        process.kill()
        os.close(leader)
    assert "/exit" in seen


def read_until(terminal: int, wanted: str) -> str:
    """What the terminal shows up to and including `wanted`."""
    seen = ""
    deadline = time.monotonic() + SECONDS
    while wanted not in seen:
        ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"{wanted!r} did not come: {seen!r}"
        seen += os.read(terminal, 4096).decode(errors="replace")
    return seen


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["chat", "/no/such/model"], "/no/such/model does not exist"),
        (["chat"], "give either a model or --demo"),
        (["chat", "--demo", "--weights", "q5"], "weights='q5' cannot be used: one of auto, f32, bf16, q8, q4 works"),
        (["chat", "--demo", "--cpu-isa", "mmx"], "cpu_isa='mmx' cannot be used"),
        (["chat", "--demo", "--threads", "0"], "threads=0 cannot be used"),
        (["chat", "--demo", "--max-context", "99999999"], "max_context=99999999 cannot be used"),
        (["models", "pull", "gpt5"], "no model called 'gpt5' can be pulled"),
        (["models", "rm", "smollm2"], "smollm2"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(arguments: list[str], message: str, tmp_path: Path) -> None:
    result = run(*arguments, environment={"NINFER_HOME": str(tmp_path)})
    assert result.returncode == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_a_damaged_model_is_named_before_anything_is_computed(tmp_path: Path) -> None:
    from importlib.resources import files

    source = Path(str(files("ninfer.demo") / "hybrid"))
    for file in source.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    result = run("chat", str(tmp_path), text="hello.\n")
    assert result.returncode == 1
    assert "model.safetensors" in result.stderr and "expected" in result.stderr and "found" in result.stderr


def test_the_store_is_listed_and_models_are_inspected(tmp_path: Path) -> None:
    from importlib.resources import files

    listed = run("models", "list", environment={"NINFER_HOME": str(tmp_path)})
    assert listed.returncode == 0 and "name" in listed.stdout
    inspected = run("models", "inspect", str(files("ninfer.demo") / "hybrid"))
    assert inspected.returncode == 0, inspected.stderr
    assert "1536" in inspected.stdout


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert run("--version").stdout.strip() == f"ninfer {version('ninfer')}"
