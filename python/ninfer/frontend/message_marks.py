"""Marks the places in a rendered prompt where each message's own text begins and ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ninfer.frontend.chat_prompt import ChatPrompt
from ninfer.frontend.private_characters import unused_characters

_DIGITS = 256
_FIRST_DIGIT = 0xE000  # private use as well; a digit means something only behind the leading character
_MAX_MESSAGES = _DIGITS * _DIGITS // 2 - 1
_TEXT_KEYS = ("content", "thinking", "reasoning_content")


@dataclass(frozen=True)
class MarkedRegion:
    """Characters of a text that one message, or the tools, wrote: first to last mark, begins_known and ends_known if
    these are marks of a beginning and of an end."""

    start: int
    end: int
    begins_known: bool
    ends_known: bool


@dataclass(frozen=True)
class MarkedText:
    """A rendered text without the marks, and the regions of those messages, by index, that are shown in order.

    tools_end: where the text of the last tool ends, if it is shown.
    """

    text: str
    regions: Mapping[int, MarkedRegion]
    tools_end: int | None


class MessageMarks:
    """Every mark is three private-use characters: a leading one that `text` does not have, and a number.

    They stand inside white space that surrounds a string, so that a template may trim it, and never in an empty string,
    so that a template sees that it is empty.
    """

    def __init__(self, text: str) -> None:
        [self._lead] = unused_characters(text, 1)

    def marked(self, prompt: ChatPrompt, *, calls: bool) -> ChatPrompt:
        """The prompt with marks around the messages' strings. calls: also around those that are not contents of the
        user and the system, which templates look into more often."""
        messages = [
            self._marked_message(message, index, calls) if index < _MAX_MESSAGES else message
            for index, message in enumerate(prompt.messages)
        ]
        tools = prompt.tools
        if tools and calls:
            tools = [*tools[:-1], _descriptions_mapped(tools[-1], self._around(_MAX_MESSAGES))]
        return replace(prompt, messages=messages, tools=tools)

    def read(self, rendered: str) -> MarkedText:
        """Takes the marks out."""
        pieces = rendered.split(self._lead)
        texts, place = [pieces[0]], len(pieces[0])
        found: dict[int, list[tuple[int, bool]]] = {}
        for piece in pieces[1:]:
            number = sum((ord(digit) - _FIRST_DIGIT) * scale for digit, scale in zip(piece, (_DIGITS, 1), strict=False))
            found.setdefault(number // 2, []).append((place, number % 2 == 0))
            texts.append(piece[2:])
            place += len(piece) - 2
        tools = found.pop(_MAX_MESSAGES, None)
        regions = {index: _region(marks) for index, marks in sorted(found.items())}
        return MarkedText("".join(texts), _in_order(regions), None if tools is None else tools[-1][0])

    def _marked_message(self, message: Mapping[str, Any], index: int, calls: bool) -> Mapping[str, Any]:
        around = self._around(index)
        if not calls:
            return message if message.get("role") not in ("system", "user") else _texts_mapped(message, around)
        changed = _texts_mapped(message, around)
        if isinstance(message.get("tool_calls"), list | tuple):
            changed["tool_calls"] = [_call_mapped(call, around) for call in message["tool_calls"]]
        return changed

    def _around(self, index: int) -> Callable[[str], str]:
        begin, end = self._mark(2 * index), self._mark(2 * index + 1)

        def changed(text: str) -> str:
            bare = text.strip()
            if not bare:
                return text
            start = text.index(bare)
            return f"{text[:start]}{begin}{bare}{end}{text[start + len(bare) :]}"

        return changed

    def _mark(self, number: int) -> str:
        return self._lead + chr(_FIRST_DIGIT + number // _DIGITS) + chr(_FIRST_DIGIT + number % _DIGITS)


def _region(marks: Sequence[tuple[int, bool]]) -> MarkedRegion:
    (start, begins), (end, ends_as_beginning) = marks[0], marks[-1]
    return MarkedRegion(start, end, begins, not ends_as_beginning)


def _in_order(regions: Mapping[int, MarkedRegion]) -> dict[int, MarkedRegion]:
    """Without messages that stand behind a later one; where a message is shown twice, its first region counts."""
    kept: dict[int, MarkedRegion] = {}
    following: int | None = None
    for index, region in sorted(regions.items(), reverse=True):
        if following is None or region.start <= following:
            inside = following is None or region.end <= following
            kept[index] = region if inside else replace(region, end=region.start, ends_known=False)
            following = region.start
    return dict(sorted(kept.items()))


def _texts_mapped(message: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    changed = dict(message)
    for key in _TEXT_KEYS:
        value = message.get(key)
        if isinstance(value, str):
            changed[key] = change(value)
        elif isinstance(value, list | tuple):
            changed[key] = [
                {**part, "text": change(part["text"])}
                if isinstance(part, Mapping) and isinstance(part.get("text"), str)
                else part
                for part in value
            ]
    return changed


def _call_mapped(call: Any, change: Callable[[str], str]) -> Any:
    if not isinstance(call, Mapping):
        return call
    if isinstance(call.get("function"), Mapping):
        return {**call, "function": _call_mapped(call["function"], change)}
    if not isinstance(call.get("arguments"), Mapping):
        return call
    # Not its name: templates compare it, and show it again with the result.
    items = call["arguments"].items()
    return {**call, "arguments": {key: change(value) if isinstance(value, str) else value for key, value in items}}


def _descriptions_mapped(value: Any, change: Callable[[str], str]) -> Any:
    """A tool with the descriptions in it changed, which no template looks into."""
    if isinstance(value, Mapping):
        return {
            key: change(item) if key == "description" and isinstance(item, str) else _descriptions_mapped(item, change)
            for key, item in value.items()
        }
    return value
