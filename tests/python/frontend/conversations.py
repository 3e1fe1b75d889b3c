"""Conversations that exercise what chat templates distinguish, in OpenAI form with arguments as objects."""

from __future__ import annotations

from typing import Any

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather in a <city> & 'country'",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "The city's name, e.g. Zürich"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            },
            "required": ["city"],
        },
    },
}
CLOCK = {
    "type": "function",
    "function": {
        "name": "get_time",
        "description": "Tell the time",
        "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}, "required": []},
    },
}


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def _assistant(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def _call(name: str, arguments: dict[str, Any], number: int) -> dict[str, Any]:
    return {"id": f"callid{number:03}", "type": "function", "function": {"name": name, "arguments": arguments}}


def _result(text: str, number: int) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"callid{number:03}", "name": "get_weather", "content": text}


SYSTEM = {"role": "system", "content": 'You are "kind" & <brief>.\n'}
ASKED = _user("How is the weather in Zürich?")
CALLED = _assistant("", tool_calls=[_call("get_weather", {"city": "Zürich", "unit": "celsius"}, 1)])
ANSWERED = _result('{"sky": "grey", "degrees": 4.5}', 1)

CONVERSATIONS: dict[str, dict[str, Any]] = {
    "one user message": {"messages": [_user("  Hi there 👋\n")]},
    "system and turns": {"messages": [SYSTEM, _user("hi"), _assistant("Hello!"), _user("1 < 2 && 3 > 2?")]},
    "no generation prompt": {"messages": [_user("hi"), _assistant(" Hello! ")], "add_generation_prompt": False},
    "tools offered": {"messages": [SYSTEM, ASKED], "tools": [WEATHER, CLOCK]},
    "tools offered, no system": {"messages": [ASKED], "tools": [WEATHER]},
    "empty list of tools": {"messages": [SYSTEM, ASKED], "tools": []},
    "tool called": {"messages": [SYSTEM, ASKED, CALLED, ANSWERED], "tools": [WEATHER]},
    "tool called, turn closed": {
        "messages": [SYSTEM, ASKED, CALLED, ANSWERED, _assistant("Grey."), _user("And tomorrow?")],
        "tools": [WEATHER],
    },
    "two calls at once": {
        "messages": [
            ASKED,
            _assistant("I look.", tool_calls=[_call("get_weather", {"city": "a"}, 1), _call("get_time", {}, 2)]),
            _result("fine", 1),
            _result("noon", 2),
        ],
        "tools": [WEATHER, CLOCK],
    },
    "reasoning": {
        "messages": [_user("2+2?"), _assistant("4", reasoning_content="\nTwo and two.\n"), _user("sure?")],
    },
    "reasoning before a call": {
        "messages": [ASKED, {**CALLED, "reasoning_content": "I must look."}, ANSWERED],
        "tools": [WEATHER],
    },
    "reasoning inside content": {
        "messages": [_user("2+2?"), _assistant("<think>\nTwo and two.\n</think>\n\n4"), _user("sure?")],
    },
    "thinking off": {"messages": [SYSTEM, _user("hi")], "enable_thinking": False},
    "null content": {"messages": [ASKED, {**CALLED, "content": None}, ANSWERED], "tools": [WEATHER]},
    "content parts": {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}],
    },
    "two users in a row": {"messages": [_user("a"), _user("b")]},
    "unknown role": {"messages": [_user("a"), {"role": "narrator", "content": "b"}]},
    "no messages": {"messages": []},
    "continued answer": {
        "messages": [_user("count"), _assistant("1, 2, ")],
        "add_generation_prompt": False,
        "continue_final_message": True,
    },
}
