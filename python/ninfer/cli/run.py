"""`ninfer run`: one answer to stdout, everything else to stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Annotated, TextIO

import typer

from ninfer.cli.engine_flags import EngineFlags
from ninfer.cli.flag_groups import with_flags
from ninfer.cli.load_with_progress import load_with_progress
from ninfer.cli.local_conversation import LocalConversation
from ninfer.cli.model_choice import DemoOption, model_path
from ninfer.cli.remote_conversation import RemoteConversation
from ninfer.cli.remote_flags import ApiKeyOption, UrlOption, remote_server
from ninfer.cli.sampling_flags import MaxTokens, Seed, Temperature, sampling_fields
from ninfer.cli.terminal_text import visible
from ninfer.config.engine_options import EngineOptions
from ninfer.frontend.reasoning_parser import ReasoningDelta


@with_flags(engine_flags=EngineFlags)
def run_prompt(
    prompt: Annotated[str, typer.Argument(help="What the user says.")],
    model: Annotated[str | None, typer.Option("--model", "-m", help="As MODEL of `ninfer chat`.")] = None,
    demo: DemoOption = None,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    temperature: Temperature = None,
    seed: Seed = None,
    max_tokens: MaxTokens = None,
    *,
    engine_flags: EngineFlags,
) -> None:
    """Answer one prompt: the answer goes to stdout, reasoning to stderr. Without a model, the demo model answers."""
    sampling = sampling_fields(temperature, seed, max_tokens)
    if url is not None:
        with remote_server(url, api_key, model, demo) as server:
            _answer(RemoteConversation(server, sampling=sampling).say(prompt))
        return
    path = model_path(model, demo if model or demo else "hybrid")
    # Nobody asks again.
    options = EngineOptions.from_mapping({**engine_flags.as_options(), "context_cache": False})
    with load_with_progress(path, options) as engine:
        _answer(LocalConversation(engine, sampling=sampling).say(prompt))


def _answer(deltas: Iterable[ReasoningDelta]) -> None:
    thought = False
    for delta in deltas:
        thought = thought or bool(delta.reasoning)
        _write(sys.stderr, delta.reasoning)
        _write(sys.stdout, delta.content)
    if thought:
        _write(sys.stderr, "\n")
    _write(sys.stdout, "\n")


def _write(stream: TextIO, text: str) -> None:
    """A file or a pipe gets the model's text exactly, a terminal no control characters."""
    stream.write(visible(text) if stream.isatty() else text)
    stream.flush()
