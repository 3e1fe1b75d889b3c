"""OpenAI clients send the arguments of a tool call as a JSON string; chat templates want the object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ninfer.errors import RequestError


def with_argument_objects(message: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The message with every JSON string of arguments parsed; what is no JSON object stays as it is.

    path: of the message, for the RequestError about an object that holds no JSON value: a number that is none or
    infinite, or half of a character.
    """
    calls = message.get("tool_calls")
    if not isinstance(calls, list | tuple):
        return dict(message)
    parsed = [_with_parsed_arguments(call, f"{path}.tool_calls[{index}]") for index, call in enumerate(calls)]
    return {**message, "tool_calls": parsed}


def _with_parsed_arguments(call: Any, path: str) -> Any:
    if not isinstance(call, Mapping):
        return call
    if isinstance(call.get("function"), Mapping):
        return {**call, "function": _with_parsed_arguments(call["function"], f"{path}.function")}
    arguments = call.get("arguments")
    return {**call, "arguments": _parsed(arguments, f"{path}.arguments")} if isinstance(arguments, str) else call


def _parsed(text: str, path: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(value, dict):
        return text
    # What is nested too deeply is refused with everything else that is.
    with suppress(RecursionError):
        _check(value, path)
    return value


def _check(value: dict[str, Any], path: str) -> None:
    """Python's parser takes more than JSON has; templates would write it into the prompt, or fail."""
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise RequestError(path, "holds half of a surrogate pair, which is no character") from None
    except ValueError:
        raise RequestError(path, "holds a number that JSON does not have: NaN, or one beyond a double") from None
