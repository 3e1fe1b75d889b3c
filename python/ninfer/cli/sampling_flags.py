"""The sampling options of the commands that let a model answer."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ninfer.engine.sampling_params import SamplingParams

Temperature = Annotated[float | None, typer.Option(help="0 for the best token; by default the model's.")]
Seed = Annotated[int | None, typer.Option(help="Makes sampled answers repeatable.")]
MaxTokens = Annotated[int | None, typer.Option(help="Longest answer in tokens.")]

SAMPLING_FLAG_NAMES = ("temperature", "seed", "max_tokens")


def sampling_fields(temperature: float | None, seed: int | None, max_tokens: int | None) -> dict[str, Any]:
    """What the user chose. Raises RequestError for a value out of range, before a model is loaded."""
    chosen: dict[str, Any] = {"temperature": temperature, "seed": seed, "max_tokens": max_tokens}
    given = {name: value for name, value in chosen.items() if value is not None}
    SamplingParams(**given)
    return given
