"""OpenAI clients send the arguments of a tool call as a JSON string; chat templates want the object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def with_argument_objects(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message with every JSON string of arguments parsed; what is no JSON object stays as it is."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list | tuple):
        return dict(message)
    return {**message, "tool_calls": [_with_parsed_arguments(call) for call in calls]}


def _with_parsed_arguments(call: Any) -> Any:
    if not isinstance(call, Mapping):
        return call
    if isinstance(call.get("function"), Mapping):
        return {**call, "function": _with_parsed_arguments(call["function"])}
    arguments = call.get("arguments")
    return {**call, "arguments": _parsed(arguments)} if isinstance(arguments, str) else call


def _parsed(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict) else text
