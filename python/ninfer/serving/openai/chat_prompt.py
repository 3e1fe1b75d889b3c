"""The part of a chat request that decides the prompt, as the chat template wants it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ninfer.frontend.chat_prompt import ChatPrompt
from ninfer.serving.decode import without_nulls
from ninfer.serving.http_errors import bad_field
from ninfer.serving.openai.wire import ChatMessage, RenderFields

_NEEDS_CONTENT = ("system", "developer", "user", "tool")


def chat_prompt(fields: RenderFields, raw: Mapping[str, Any]) -> ChatPrompt:
    """`raw` is what `fields` was checked from: messages and tools reach the template as the client wrote them."""
    if not fields.messages:
        raise bad_field("messages", "expected at least one message")
    go_on = fields.continue_final_message is True
    if go_on and fields.add_generation_prompt is True:
        raise bad_field("continue_final_message", "cannot be combined with add_generation_prompt")
    pairs = enumerate(zip(fields.messages, raw["messages"], strict=True))
    return ChatPrompt(
        messages=[_message(f"messages[{index}]", message, written) for index, (message, written) in pairs],
        tools=_tools(fields, raw),
        add_generation_prompt=not go_on and fields.add_generation_prompt is not False,
        continue_final_message=go_on,
        template_kwargs=_template_kwargs(fields),
    )


def _message(path: str, message: ChatMessage, raw: Mapping[str, Any]) -> dict[str, Any]:
    if message.content is None and message.role in _NEEDS_CONTENT:
        raise bad_field(f"{path}.content", f"a message of the role {message.role} needs content")
    if message.tool_calls and message.role != "assistant":
        raise bad_field(f"{path}.tool_calls", "only the assistant calls tools")
    translated = without_nulls(raw)
    if message.role == "assistant":
        # A turn that only calls tools. Templates that read its content get none, instead of failing or writing "None".
        translated.setdefault("content", "")
    if message.role == "developer":
        # Templates were written before the role had its second name.
        translated["role"] = "system"
    if isinstance(message.content, list):
        translated["content"] = "".join(
            _part_text(f"{path}.content[{index}]", part) for index, part in enumerate(raw["content"])
        )
    return translated


def _part_text(path: str, part: Mapping[str, Any]) -> str:
    kind = part["type"]
    key = "refusal" if kind == "refusal" else "text"
    if kind not in ("text", "refusal"):
        raise bad_field(f"{path}.type", f"parts of the type {kind[:40]!r} are not supported, only text")
    text = part.get(key)
    if not isinstance(text, str):
        raise bad_field(f"{path}.{key}", "expected a string")
    return text


def _tools(fields: RenderFields, raw: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    choice = fields.tool_choice
    if choice == "required" or isinstance(choice, dict):
        raise bad_field("tool_choice", "only none and auto are supported")
    if choice == "none" or not fields.tools:
        return None
    tools: list[dict[str, Any]] = raw["tools"]
    return tools


def _template_kwargs(fields: RenderFields) -> dict[str, Any]:
    """The general field first, then the two that say the same more specifically."""
    kwargs: dict[str, Any] = dict(fields.chat_template_kwargs or {})
    if fields.reasoning_effort is not None:
        kwargs["reasoning_effort"] = fields.reasoning_effort
        if fields.reasoning_effort == "none":
            kwargs["enable_thinking"] = False
    if fields.enable_thinking is not None:
        kwargs["enable_thinking"] = fields.enable_thinking
    return kwargs
