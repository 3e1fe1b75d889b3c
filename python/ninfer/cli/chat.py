"""`ninfer chat`: talk with a model in the terminal."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ninfer.cli.cache_flags import CacheFlags
from ninfer.cli.chat_terminal import ChatTerminal
from ninfer.cli.engine_flags import EngineFlags
from ninfer.cli.flag_groups import with_flags
from ninfer.cli.load_with_progress import load_with_progress
from ninfer.cli.local_conversation import LocalConversation
from ninfer.cli.model_choice import DemoOption, ModelArgument, model_path
from ninfer.cli.remote_conversation import RemoteConversation
from ninfer.cli.remote_flags import ApiKeyOption, UrlOption, remote_server
from ninfer.cli.sampling_flags import MaxTokens, Seed, Temperature, sampling_fields
from ninfer.config.engine_options import EngineOptions


@with_flags(cache_flags=CacheFlags, engine_flags=EngineFlags)
def chat(
    model: ModelArgument = None,
    demo: DemoOption = None,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    temperature: Temperature = None,
    seed: Seed = None,
    max_tokens: MaxTokens = None,
    system: Annotated[str | None, typer.Option(help="A system message to begin with.")] = None,
    thinking: Annotated[bool, typer.Option(help="Whether the model may think first, if it can.")] = True,
    *,
    cache_flags: CacheFlags,
    engine_flags: EngineFlags,
) -> None:
    """Talk with a model; answers stream as they are computed."""
    turns: dict[str, Any] = {
        "beginning": [] if system is None else [{"role": "system", "content": system}],
        "sampling": sampling_fields(temperature, seed, max_tokens),
        "template_kwargs": {} if thinking else {"enable_thinking": False},
    }
    if url is not None:
        with remote_server(url, api_key, model, demo) as server:
            # Now, so that a server that is not there is not noticed only after the first question.
            server.model()
            ChatTerminal(RemoteConversation(server, **turns)).run()
        return
    options = EngineOptions.from_mapping({**engine_flags.as_options(), **cache_flags.as_options()})
    with load_with_progress(model_path(model, demo), options) as engine:
        conversation = LocalConversation(engine, **turns)
        conversation.check()
        ChatTerminal(conversation).run()
