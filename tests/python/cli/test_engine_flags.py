"""Every engine option has a flag and a NINFER_ variable, the same for every command that loads a model."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
import typer

from ninfer.cli.app import app
from ninfer.cli.cache_flags import CACHE_FLAG_NAMES, CacheFlags
from ninfer.cli.engine_flags import FLAG_NAMES, EngineFlags
from ninfer.config.engine_options import EngineOptions
from tests.fixtures.ninfer_command import run

# `chat` and `run` answer one request at a time and have --max-tokens.
SERVER_ONLY = {"max_concurrency", "default_max_tokens"}
BAD_VALUES = {
    "device": "cuda",
    "threads": "0",
    "cpu_isa": "mmx",
    "weights": "q5",
    "kv_dtype": "q2",
    "max_context": "99999999",
    "kv_capacity": "0",
    "prefill_chunk": "0",
    "chat_template": "/no/such/file",
}


def test_flags_are_the_engine_options_with_their_defaults() -> None:
    names = [*FLAG_NAMES, *CACHE_FLAG_NAMES]
    assert sorted(names) == sorted({field.name for field in fields(EngineOptions)} - SERVER_ONLY)
    assert EngineOptions.from_mapping({**EngineFlags().as_options(), **CacheFlags().as_options()}) == EngineOptions()


# `run` answers once.
@pytest.mark.parametrize(("command", "names"), [("chat", (*FLAG_NAMES, *CACHE_FLAG_NAMES)), ("run", FLAG_NAMES)])
def test_commands_that_load_a_model_offer_every_flag(command: str, names: tuple[str, ...]) -> None:
    parser = typer.main.get_command(app).commands[command]  # type: ignore[attr-defined]  # it is a group
    found = {option.name: (option.opts, option.envvar) for option in parser.params}
    assert command == "chat" or not found.keys() & set(CACHE_FLAG_NAMES)
    for name in names:
        assert found[name] == ([f"--{name.replace('_', '-')}"], f"NINFER_{name.upper()}")


@pytest.mark.parametrize("name", FLAG_NAMES)
def test_a_variable_reaches_the_engine_and_is_named_when_it_cannot_be_used(name: str) -> None:
    variable = f"NINFER_{name.upper()}"
    result = run("run", "hello.", environment={variable: BAD_VALUES[name]})
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert BAD_VALUES[name] in result.stderr
    assert variable in result.stderr or name == "chat_template", "a template is named by its file"


def test_the_command_line_outranks_the_variable() -> None:
    result = run("run", "hello.", "--cpu-isa", "auto", "--weights", "q9", environment={"NINFER_CPU_ISA": "mmx"})
    assert result.stderr == "ninfer: --weights q9 cannot be used: one of auto, f32, bf16, q8, q4 works\n"


def test_automatic_sizes_and_numbers_are_both_accepted() -> None:
    for value in ("auto", "64"):
        result = run("run", "hello.", "--kv-capacity", value, "--prefill-chunk", value, "--max-context", "64")
        assert result.stdout == "hello! how can i help you?\n", result.stderr
    wrong = run("run", "hello.", "--kv-capacity", "many")
    assert wrong.returncode == 2
    assert "neither auto nor a whole number" in wrong.stderr


def test_a_template_from_the_environment_replaces_the_models(tmp_path: Path) -> None:
    template = tmp_path / "refuses.jinja"
    template.write_text("{{ raise_exception('from the variable') }}", encoding="utf-8")
    result = run("chat", "--demo", environment={"NINFER_CHAT_TEMPLATE": str(template)})
    assert result.returncode == 1
    assert "from the variable" in result.stderr
