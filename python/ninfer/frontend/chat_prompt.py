"""What a chat request hands to a template, in the one form that templates can rely on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ninfer.errors import RequestError
from ninfer.frontend.tool_call_arguments import with_argument_objects

_MAX_NESTING = 200  # what follows is recursive, and Python allows about a thousand levels
_REASONING_KEYS = ("reasoning_content", "thinking", "reasoning")


MAX_MARKERS = 4


@dataclass(frozen=True)
class PromptMarker:
    """Where a request says that others will begin alike: behind part `part` of a message's list of parts, behind the
    whole message if that is None, behind all tools if `message` is None."""

    message: int | None
    part: int | None = None


@dataclass(frozen=True)
class ChatPrompt:
    """A conversation to be rendered.

    messages, tools: in OpenAI form. add_generation_prompt: end with the opening of the model's turn.
    continue_final_message: leave the last message open, so that the model goes on with it.
    template_kwargs: further variables of the template. markers: at most MAX_MARKERS (ValueError for more); they change
    nothing in the prompt.
    """

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] | None = None
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    markers: tuple[PromptMarker, ...] = ()

    def __post_init__(self) -> None:
        if len(self.markers) > MAX_MARKERS:
            raise ValueError(f"{len(self.markers)} markers; at most {MAX_MARKERS} work")


def normalised_prompt(prompt: ChatPrompt) -> ChatPrompt:
    """The same prompt as templates expect it; doing it twice changes nothing.

    null means absent; tool-call arguments are objects; reasoning stands under the names that templates look for.
    Raises RequestError for what no template can rely on, ValueError for a marker in a message that there is not.
    """
    for param, value in (
        ("messages", prompt.messages),
        ("tools", prompt.tools),
        ("chat_template_kwargs", prompt.template_kwargs),
    ):
        _refuse_deep_nesting(param, value)
    if prompt.add_generation_prompt and prompt.continue_final_message:
        raise RequestError("continue_final_message", "cannot be combined with add_generation_prompt")
    for marker in prompt.markers:
        if marker.message is not None and not 0 <= marker.message < len(prompt.messages):
            raise ValueError(f"a marker in message {marker.message} of {len(prompt.messages)}")
    messages = [_normalised_message(message, f"messages[{index}]") for index, message in enumerate(prompt.messages)]
    return replace(prompt, messages=messages)


def _normalised_message(message: Mapping[str, Any], path: str) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise RequestError("messages", f"a message is an object, not {type(message).__name__}")
    present = {key: value for key, value in message.items() if value is not None}
    reasoning = next((present[key] for key in _REASONING_KEYS if key in present), None)
    if reasoning is not None:
        present = {"thinking": reasoning, **present, "reasoning_content": reasoning}
    return with_argument_objects(present, path)


def _refuse_deep_nesting(param: str, value: Any) -> None:
    level: list[Any] = [[value]]
    for _ in range(_MAX_NESTING):
        inner = (item.values() if isinstance(item, Mapping) else item for item in level)
        level = [item for items in inner for item in items if isinstance(item, Mapping | list | tuple)]
        if not level:
            return
    raise RequestError(param, f"objects and lists are nested more than {_MAX_NESTING} levels deep")
