"""`ninfer chat`: talk with a model in the terminal."""

from __future__ import annotations

from typing import Annotated

import typer

from ninfer.cli.chat_terminal import ChatTerminal
from ninfer.cli.conversation import Conversation
from ninfer.cli.engine_flags import EngineFlags
from ninfer.cli.flag_groups import with_flags
from ninfer.cli.load_with_progress import load_with_progress
from ninfer.cli.model_choice import DemoOption, ModelArgument, model_path
from ninfer.cli.sampling_flags import MaxTokens, Seed, Temperature, sampling_fields


@with_flags(engine_flags=EngineFlags)
def chat(
    model: ModelArgument = None,
    demo: DemoOption = None,
    temperature: Temperature = None,
    seed: Seed = None,
    max_tokens: MaxTokens = None,
    system: Annotated[str | None, typer.Option(help="A system message to begin with.")] = None,
    thinking: Annotated[bool, typer.Option(help="Whether the model may think first, if it can.")] = True,
    *,
    engine_flags: EngineFlags,
) -> None:
    """Talk with a model; answers stream as they are computed."""
    sampling = sampling_fields(temperature, seed, max_tokens)
    path = model_path(model, demo)
    with load_with_progress(path, engine_flags) as engine:
        conversation = Conversation(
            engine,
            beginning=[] if system is None else [{"role": "system", "content": system}],
            sampling=sampling,
            template_kwargs={} if thinking else {"enable_thinking": False},
        )
        conversation.check()
        ChatTerminal(conversation).run()
