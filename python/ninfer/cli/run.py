"""`ninfer run`: one answer to stdout, everything else to stderr."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ninfer.cli.conversation import Conversation
from ninfer.cli.engine_options import CpuIsa, KvDtype, Threads, Weights, load_with_progress
from ninfer.cli.model_choice import DemoOption, model_path


def run_prompt(
    prompt: Annotated[str, typer.Argument(help="What the user says.")],
    model: Annotated[str | None, typer.Option("--model", "-m", help="As MODEL of `ninfer chat`.")] = None,
    demo: DemoOption = None,
    temperature: Annotated[float | None, typer.Option(help="0 for the best token; by default the model's.")] = None,
    seed: Annotated[int | None, typer.Option(help="Makes sampled answers repeatable.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Longest answer in tokens.")] = None,
    threads: Threads = None,
    cpu_isa: CpuIsa = "auto",
    weights: Weights = "auto",
    kv_dtype: KvDtype = "auto",
) -> None:
    """Answer one prompt: the answer goes to stdout, reasoning to stderr. Without a model, the demo model answers."""
    path = model_path(model, demo if model or demo else "hybrid")
    options = {"threads": threads, "cpu_isa": cpu_isa, "weights": weights, "kv_dtype": kv_dtype}
    sampling = {"temperature": temperature, "seed": seed, "max_tokens": max_tokens}
    with load_with_progress(path, options) as engine:
        given = {name: value for name, value in sampling.items() if value is not None}
        for delta in Conversation(engine, sampling=given).say(prompt):
            sys.stderr.write(delta.reasoning)
            sys.stdout.write(delta.content)
            sys.stdout.flush()
    sys.stderr.write("\n")
    sys.stdout.write("\n")
