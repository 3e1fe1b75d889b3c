"""Which model a command is to load: MODEL, or one of the demo models."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ninfer.cli.demo_flag import DEMO_MODELS
from ninfer.config.store_location import models_directory
from ninfer.demo import HYBRID_DIRECTORY
from ninfer.errors import ModelNotFoundError
from ninfer.model_store.model_store import ModelStore
from ninfer.model_store.pull import pull
from ninfer.model_store.resolve import resolve_model

ModelArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL",
        help="A Hugging Face directory, a .gguf file, a name in the model store, or org/name of the Hugging Face hub.",
        show_default=False,
    ),
]
DemoOption = Annotated[
    str | None,
    typer.Option(
        metavar="[hybrid|smollm2]",
        help="Use a demo model: the hybrid one inside this package (the default), or SmolLM2-135M, fetched once.",
        show_default=False,
    ),
]


def check_choice(model: str | None, demo: str | None) -> None:
    """Raises ModelNotFoundError unless exactly one of the two is given, and for a demo model that there is not."""
    names = " and ".join(DEMO_MODELS)
    if model is None and demo is None:
        raise ModelNotFoundError("give either a model or --demo")
    if demo is not None and demo not in DEMO_MODELS:
        raise ModelNotFoundError(f"{demo!r} is no demo model; these are {names}")
    if model is not None and demo is not None:
        raise ModelNotFoundError(
            f"give either a model or --demo, not both; {model!r} is no demo model, these are {names}"
        )


def model_path(model: str | None, demo: str | None) -> Path:
    """Path of the chosen model; smollm2 is fetched if it is not in the store yet.

    Raises what `check_choice`, resolving and fetching raise.
    """
    check_choice(model, demo)
    store = ModelStore(models_directory(os.environ))
    if model is not None:
        return resolve_model(model, store)
    if demo is None or demo == "hybrid":
        return HYBRID_DIRECTORY
    stored = store.find(demo)
    return stored.path if stored is not None else pull(demo, store, os.environ)
