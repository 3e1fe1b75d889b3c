"""The commands as a user runs them, in processes of their own, with the demo model of the package."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from ninfer.cli.demo_flag import with_demo_value
from ninfer.demo import HYBRID_DIRECTORY
from tests.fixtures.ninfer_command import run


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["chat", "--demo"], ["chat", "--demo", "hybrid"]),
        (["chat", "--demo", "smollm2"], ["chat", "--demo", "smollm2"]),
        (["chat", "--demo", "--seed", "1"], ["chat", "--demo", "hybrid", "--seed", "1"]),
        (["chat", "--demo", "smollm"], ["chat", "--demo", "smollm"]),
        (["run", "--demo", "hello"], ["run", "--demo", "hybrid", "hello"]),
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["chat", "/no/such/model"], "/no/such/model does not exist"),
        (["chat"], "give either a model or --demo"),
        (["chat", "--demo", "--weights", "q5"], "--weights q5 cannot be used: one of auto, f32, bf16, q8, q4 works"),
        (["chat", "--demo", "--cpu-isa", "mmx"], "--cpu-isa mmx cannot be used"),
        (["chat", "--demo", "--threads", "0"], "--threads 0 cannot be used"),
        (["chat", "--demo", "--max-context", "99999999"], "--max-context 99999999 cannot be used"),
        (["chat", "--demo", "--kv-capacity", "0"], "--kv-capacity 0 cannot be used"),
        (["run", "hello", "--prefill-chunk", "0"], "--prefill-chunk 0 cannot be used"),
        (["run", "hello", "--device", "cuda"], "--device cuda cannot be used"),
        (["run", "hello", "--chat-template", "/no/such/file"], "/no/such/file"),
        (["run", "hello", "--max-tokens", "0"], "--max-tokens: expected at least 1, found 0"),
        (["run", "hello", "--temperature", "-1"], "--temperature: expected a number from 0"),
        (["chat", "--demo", "--max-tokens", "0"], "--max-tokens: expected at least 1, found 0"),
        (["chat", "--demo", "--temperature", "-1"], "--temperature: expected a number from 0"),
        (["chat", "--demo", "smollm"], "'smollm' is no demo model; these are hybrid and smollm2"),
        (["chat", "--demo=hybird"], "'hybird' is no demo model; these are hybrid and smollm2"),
        (["run", "--demo", "smolm2", "hello"], "'smolm2' is no demo model; these are hybrid and smollm2"),
        (["chat", "mine", "--demo"], "give either a model or --demo, not both"),
        (["models", "pull", "gpt5"], "no model called 'gpt5' can be pulled"),
        (["models", "rm", "smollm2"], "smollm2"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(arguments: list[str], message: str, tmp_path: Path) -> None:
    result = run(*arguments, text="hello.\n", environment={"NINFER_HOME": str(tmp_path)})
    assert result.returncode == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_a_damaged_model_is_named_before_anything_is_computed(tmp_path: Path) -> None:
    copy_demo(tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    result = run("chat", str(tmp_path), text="hello.\n")
    assert result.returncode == 1
    assert "model.safetensors" in result.stderr and "expected" in result.stderr and "found" in result.stderr


def copy_demo(target: Path) -> None:
    target.mkdir(exist_ok=True)
    for file in HYBRID_DIRECTORY.iterdir():
        (target / file.name).write_bytes(file.read_bytes())


def test_a_model_without_a_template_is_refused_before_the_first_turn(tmp_path: Path) -> None:
    copy_demo(tmp_path)
    template = (tmp_path / "chat_template.jinja").rename(tmp_path / "elsewhere.jinja")
    for arguments in (["chat", str(tmp_path)], ["run", "hello.", "-m", str(tmp_path)]):
        refused = run(*arguments)
        assert refused.returncode == 1
        assert "--chat-template FILE" in refused.stderr and refused.stderr.count("\n") == 1
        answered = run(*arguments, "--chat-template", str(template), text="hello.\n")
        assert answered.returncode == 0, answered.stderr
        assert "hello! how can i help you?" in answered.stdout


def test_a_refused_turn_ends_a_piped_chat(tmp_path: Path) -> None:
    template = tmp_path / "short.jinja"
    template.write_text("{% if messages | length > 1 %}{{ raise_exception('one turn only') }}{% endif %}hello", "utf-8")
    lines = "hello.\nagain.\nnever answered.\n"
    result = run("chat", "--demo", "--max-tokens", "4", "--chat-template", str(template), text=lines)
    assert result.returncode == 1
    assert result.stdout.count("[prompt ") == 1
    assert "one turn only" in result.stderr and result.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [["models", "pull", "smollm2"], ["chat", "--demo", "smollm2"]])
def test_a_store_that_cannot_be_written_is_one_line_with_its_path(arguments: list[str]) -> None:
    result = run(*arguments, environment={"NINFER_HOME": "/proc/nope"})
    assert result.returncode == 1
    assert "/proc/nope" in result.stderr and result.stderr.count("\n") == 1


def test_the_store_is_listed(tmp_path: Path) -> None:
    listed = run("models", "list", environment={"NINFER_HOME": str(tmp_path)})
    assert listed.returncode == 0 and "name" in listed.stdout


def test_inspect_shows_names_that_look_like_markup(tmp_path: Path) -> None:
    model = tmp_path / "a[red]b :smile:"
    copy_demo(model)
    # A relative path, so that it fits on one line of the table.
    inspected = run("models", "inspect", model.name, directory=tmp_path)
    assert inspected.returncode == 0, inspected.stderr
    assert "a[red]b :smile:" in inspected.stdout
    assert "1536" in inspected.stdout


def test_text_that_the_encoding_lacks_does_not_end_a_command(tmp_path: Path) -> None:
    template = tmp_path / "stars.jinja"
    template.write_text("{{ raise_exception('\u2605 refused') }}", "utf-8")
    environment = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    refused = run("run", "hello.", "--chat-template", str(template), environment=environment)
    assert refused.returncode == 1
    assert "? refused" in refused.stderr and refused.stderr.count("\n") == 1
    noise = ["--temperature", "10000", "--seed", "3", "--max-tokens", "200"]
    exact = run("run", "hello.", *noise)
    ascii_only = run("run", "hello.", *noise, environment=environment)
    assert ascii_only.returncode == 0, ascii_only.stderr
    assert not exact.stderr.isascii() or not exact.stdout.isascii(), "this seed must yield characters outside ASCII"
    assert ascii_only.stdout.isascii() and ascii_only.stderr.isascii()
    piped = run("chat", "--demo", text="h\u00e4llo.\n", environment=environment)
    assert piped.returncode == 0, piped.stderr


def test_the_version_is_that_of_the_package() -> None:
    assert run("--version").stdout.strip() == f"ninfer {version('ninfer')}"
