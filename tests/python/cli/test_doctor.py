"""`ninfer doctor` says what is so, and fails where no model could run."""

from __future__ import annotations

import json
import os
import platform
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ninfer import native
from ninfer.cli import doctor as doctor_module
from ninfer.cli.app import app
from ninfer.config.engine_options import EngineOptions
from ninfer.errors import CapacityError
from tests.fixtures.ninfer_command import run
from tests.fixtures.ninfer_server import free_port


def report(*arguments: str, **environment: str) -> dict[str, Any]:
    result = run("doctor", "--json", *arguments, environment=environment)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_the_facts_are_those_of_this_machine(tmp_path: Path) -> None:
    found = report("--port", str(free_port()), NINFER_HOME=str(tmp_path))
    assert found["versions"]["python"] == platform.python_version()
    assert f"ninfer {found['versions']['ninfer']}" == run("--version").stdout.strip()
    sets = native.supported_cpu_isas()
    assert (found["cpu"]["instruction_sets"], found["cpu"]["chosen"]) == (sets, sets[-1])
    assert found["cpu"]["logical_cpus"] == len(os.sched_getaffinity(0))
    assert 1 <= found["cpu"]["physical_cores"] <= found["cpu"]["logical_cpus"]
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert found["memory"]["total_bytes"] == total
    assert 0 < found["memory"]["free_bytes"] <= total
    options = EngineOptions()
    assert found["defaults"]["threads"] == found["cpu"]["physical_cores"]
    assert found["defaults"]["max_concurrency"] == options.max_concurrency
    assert (found["cuda"]["library"], found["cuda"]["reason"]) == (None, "this build has no CUDA backend")
    store = {"path": str(tmp_path / "models"), "exists": False, "writable": True, "models": []}
    assert found["model_store"] == store
    assert found["cache_directory"] == {"path": str(tmp_path), "exists": True, "writable": True}
    assert found["port"]["free"] is True
    assert found["model_check"]["works"] is True


def test_a_taken_port_and_a_folder_that_cannot_be_written_are_seen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        found = report(NINFER_PORT=str(taken.getsockname()[1]), NINFER_HOME="/proc/nope")
    assert found["port"]["free"] is False and "another program listens" in found["port"]["reason"]
    assert found["model_store"]["writable"] is False


def test_the_page_for_people_holds_the_same_facts() -> None:
    result = run("doctor", "--port", str(free_port()))
    assert result.returncode == 0, result.stderr
    lines = [line.split("  ") for line in result.stdout.splitlines()]
    shown = {line[1].strip(): line[-1].strip() for line in lines if len(line) > 2}
    assert shown["instruction sets"] == ", ".join(native.supported_cpu_isas())
    assert shown["reason"] == "this build has no CUDA backend"
    assert shown["total"] == f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**20:.0f} MiB"
    assert shown["works"] == "yes"


def test_a_machine_on_which_no_model_runs_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: Any, **__: Any) -> None:
        raise CapacityError("one KV page needs 2 bytes, 1 is free")

    monkeypatch.setattr(doctor_module.LocalEngine, "load", no_memory)
    result = CliRunner().invoke(app, ["doctor", "--json"])
    assert result.exit_code == 1
    check = json.loads(result.stdout)["model_check"]
    assert check == {"works": False, "reason": "CapacityError: one KV page needs 2 bytes, 1 is free"}


def test_a_machine_that_computes_wrongly_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_module, "_ANSWER", "something else")
    result = CliRunner().invoke(app, ["doctor", "--json"])
    assert result.exit_code == 1
    assert "hello! how can i help you?" in json.loads(result.stdout)["model_check"]["reason"]


@pytest.mark.parametrize("entry", ["main", "serve"])
def test_a_package_without_its_native_core_says_so(entry: str) -> None:
    code = f"import sys; sys.modules['ninfer._core'] = None; from ninfer.cli import {entry}; {entry}()"
    result = subprocess.run(
        [sys.executable, "-c", code, "doctor"], capture_output=True, encoding="utf-8", timeout=120, check=False
    )
    assert result.returncode == 1
    assert "the native core of the package cannot be loaded" in result.stderr and result.stderr.count("\n") == 1


def test_a_source_tree_that_was_never_installed_has_no_version_and_works() -> None:
    code = (
        "import sys, importlib.metadata as metadata\n"
        "installed = metadata.version\n"
        "def version(name):\n"
        "    if name == 'ninfer': raise metadata.PackageNotFoundError(name)\n"
        "    return installed(name)\n"
        "metadata.version = version\n"
        "from ninfer.cli import main; main()"
    )

    def said(*arguments: str) -> str:
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, check=True).stdout

    assert json.loads(said("doctor", "--json"))["versions"]["ninfer"] == "unknown (not installed)"
    assert said("--version") == "ninfer unknown (not installed)\n"
