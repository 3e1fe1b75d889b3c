"""docs/reference/cli.md says exactly which options there are, with their variables and defaults."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from ninfer.cli.app import app
from ninfer.cli.serve_app import serve_app

PAGE = Path(__file__).resolve().parents[3] / "docs/reference/cli.md"
ROW = re.compile(r"^\| `(--[a-z-]+)` \| (?:`(NINFER_[A-Z_]+)`)? ?\| ([^|]+) \| [^|]+ \|$")
SECTIONS = {
    "chat": "ninfer chat",
    "run": "ninfer run",
    "doctor": "ninfer doctor",
    "calibrate": "ninfer calibrate",
    "serve": "ninfer-serve",
}
WITH_CACHE = ("serve", "chat")
# Read by the command itself, since either of two says which model.
OWN_VARIABLES = {("serve", "--demo"): "NINFER_DEMO"}


def documented(section: str) -> dict[str, tuple[str, str]]:
    """Option -> variable, default of the tables under `## section`."""
    text = PAGE.read_text("utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    found = [ROW.match(line) for line in text.splitlines() if line.startswith("| `--")]
    assert found and all(found), f"{section}: rows of another form"
    return {row[1]: (row[2] or "", row[3]) for row in found if row is not None}


def offered(command: str) -> dict[str, tuple[str, Any]]:
    """Option -> variable, default of the command itself."""
    parser = typer.main.get_command(serve_app if command == "serve" else app)
    parser = parser if command == "serve" else parser.commands[command]  # type: ignore[attr-defined]  # it is a group
    options = [one for one in parser.params if one.opts[0].startswith("--")]
    found = {one.opts[0]: (one.envvar or "", one.default) for one in options}
    return {name: (OWN_VARIABLES.get((command, name), found[name][0]), found[name][1]) for name in found}


@pytest.mark.parametrize("command", SECTIONS)
def test_the_tables_are_the_options(command: str) -> None:
    tables = documented(SECTIONS[command])
    if command != "doctor":
        tables |= documented("The loaded model")
    if command in WITH_CACHE:
        tables |= documented("The prompt cache")
    options = offered(command)
    assert tables.keys() == options.keys()
    assert {name: row[0] for name, row in tables.items()} == {name: row[0] for name, row in options.items()}
    for name, (_, default) in options.items():
        shown = tables[name][1]
        if isinstance(default, bool):
            assert shown == ("on" if default else "off"), name
        elif default is None:
            assert "`" not in shown, f"{name} has no default"
        else:
            assert shown == f"`{default:g}`" if isinstance(default, float) else f"`{default}`", name
