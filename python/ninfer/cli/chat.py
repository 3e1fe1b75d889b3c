"""`ninfer chat`: talk with a model in the terminal."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

from ninfer.cli.conversation import Answer, Conversation
from ninfer.cli.engine_options import (
    ChatTemplateFile,
    CpuIsa,
    KvDtype,
    MaxContext,
    Threads,
    Weights,
    load_with_progress,
)
from ninfer.cli.model_choice import DemoOption, ModelArgument, model_path
from ninfer.errors import RequestError

_HELP = "/clear forgets the conversation, /exit or Ctrl-D ends it, Ctrl-C stops an answer."


def chat(
    model: ModelArgument = None,
    demo: DemoOption = None,
    temperature: Annotated[float | None, typer.Option(help="0 for the best token; by default the model's.")] = None,
    seed: Annotated[int | None, typer.Option(help="Makes sampled answers repeatable.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Longest answer in tokens.")] = None,
    system: Annotated[str | None, typer.Option(help="A system message to begin with.")] = None,
    thinking: Annotated[bool, typer.Option(help="Whether the model may think first, if it can.")] = True,
    threads: Threads = None,
    cpu_isa: CpuIsa = "auto",
    weights: Weights = "auto",
    kv_dtype: KvDtype = "auto",
    max_context: MaxContext = None,
    chat_template: ChatTemplateFile = None,
) -> None:
    """Talk with a model; answers stream as they are computed."""
    options = {
        "threads": threads,
        "cpu_isa": cpu_isa,
        "weights": weights,
        "kv_dtype": kv_dtype,
        "max_context": max_context,
        "chat_template": chat_template,
    }
    path = model_path(model, demo)
    sampling = {"temperature": temperature, "seed": seed, "max_tokens": max_tokens}
    with load_with_progress(path, options) as engine:
        conversation = Conversation(
            engine,
            sampling={name: value for name, value in sampling.items() if value is not None},
            template_kwargs={} if thinking else {"enable_thinking": False},
        )
        _Terminal(conversation, [] if system is None else [{"role": "system", "content": system}]).run()


class _Terminal:
    def __init__(self, conversation: Conversation, beginning: list[dict[str, str]]) -> None:
        self._conversation = conversation
        self._beginning = beginning
        self._console = Console(highlight=False)
        self._interactive = sys.stdin.isatty()

    def run(self) -> None:
        self._conversation.messages = list(self._beginning)
        if self._interactive:
            import readline  # noqa: F401  (line editing and history for input())

            self._console.print(_HELP, style="dim")
        while (text := self._read()) is not None:
            if text in ("/exit", "/quit"):
                return
            if text == "/clear":
                self._conversation.messages = list(self._beginning)
            elif text in ("/help", "/?"):
                self._console.print(_HELP, style="dim")
            elif text:
                self._answer(text)

    def _read(self) -> str | None:
        try:
            return input("> " if self._interactive else "").strip()
        except EOFError:
            return None
        except KeyboardInterrupt:
            self._console.print()
            return None

    def _answer(self, text: str) -> None:
        thinking = False
        try:
            for delta in self._conversation.say(text):
                self._print(delta.reasoning, "dim italic")
                thinking = thinking or bool(delta.reasoning)
                if delta.content and thinking:
                    self._console.print("\n")
                    thinking = False
                self._print(delta.content, None)
        except KeyboardInterrupt:
            self._console.print("\n(stopped; this turn is forgotten)", style="dim")
            return
        except RequestError as error:
            self._console.print(str(error), style="red", markup=False)
            return
        assert self._conversation.last is not None
        self._console.print()
        self._console.print(_summary(self._conversation.last), style="dim", markup=False, soft_wrap=True)

    def _print(self, text: str, style: str | None) -> None:
        self._console.print(text, style=style, end="", markup=False, soft_wrap=True)


def _summary(answer: Answer) -> str:
    timings = answer.result.timings
    prefill = timings.prompt_n / max(timings.prompt_ms, 1e-6) * 1e3
    decode = max(timings.predicted_n - 1, 0) / max(timings.predicted_ms, 1e-6) * 1e3
    return (
        f"[prompt {answer.prompt_tokens} tokens, computed {timings.prompt_n} at {prefill:.0f}/s; "
        f"answer {timings.predicted_n} at {decode:.0f}/s; {answer.result.finish_reason}]"
    )
