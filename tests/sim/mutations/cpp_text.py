"""C++ source text as a mutation needs it: which characters are code, and which functions are no product code.

The sources are formatted by clang-format, which is what makes this short: binary operators stand between spaces,
template brackets do not, and a function's closing brace stands where its first line began.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

# Code that only judges (assertions of invariants), only tells (names), or only serves tests (fingerprints): a change
# there is no fault of the product.
_JUDGING = re.compile(
    r"\b(check_invariants|check_sequences|check_checkpoints|count_uses|fingerprint|fingerprint_of_all|add_to|to_string"
    r"|message)\(|^struct Uses "
)
_NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
_ASSERTION = re.compile(r"\bNINFER_ASSERT\w*\(|\bstatic_assert\(")


@dataclass(frozen=True)
class CppText:
    """One file. `code` has the same length as `text`; what no mutation may touch is blank there."""

    path: str
    text: str

    @cached_property
    def code(self) -> str:
        code = _NOT_CODE.sub(lambda match: _blank(match.group()), self.text)
        code = re.sub(r"(?m)^[ \t]*#.*(?:\\\n.*)*$", lambda match: _blank(match.group()), code)
        for match in reversed(list(_ASSERTION.finditer(code))):
            end = closing(code, match.end() - 1) + 1
            code = code[: match.start()] + _blank(code[match.start() : end]) + code[end:]
        return _without_judging(code)

    def line_of(self, offset: int) -> int:
        return self.text.count("\n", 0, offset) + 1


def closing(code: str, opening: int) -> int:
    """Where the bracket that opens at `opening` is closed."""
    found = _partner(code, range(opening, len(code)), {"(": ")", "[": "]", "{": "}"})
    if found is None:
        raise ValueError(f"no end of the bracket at {opening}")
    return found


def opening(code: str, close: int) -> int:
    """Where the bracket that is closed at `close` opens."""
    found = _partner(code, range(close, -1, -1), {")": "(", "]": "[", "}": "{"})
    if found is None:
        raise ValueError(f"no beginning of the bracket at {close}")
    return found


def _partner(code: str, way: range, pairs: dict[str, str]) -> int | None:
    """Where on the way the bracket at its beginning finds its other half; pairs: as they are met on it."""
    waiting: list[str] = []
    for offset in way:
        character = code[offset]
        if character in pairs:
            waiting.append(pairs[character])
        elif waiting and character == waiting[-1]:
            waiting.pop()
            if not waiting:
                return offset
    return None


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _without_judging(code: str) -> str:
    """Blanks the functions that are no product code, and constant expressions."""
    lines = code.split("\n")
    index = 0
    while index < len(lines):
        line = lines[index]
        indent = len(line) - len(line.lstrip())
        definition = _JUDGING.search(line) and re.match(r"\s*[A-Za-z_]", line)
        if "constexpr" in line:
            lines[index] = _blank(line)
            if line.rstrip().endswith("{"):
                index = _blank_body(lines, index, indent)
        elif definition and indent in (0, 4) and not line.rstrip().endswith(";"):
            index = _blank_body(lines, index, indent)
        index += 1
    return "\n".join(lines)


def _blank_body(lines: list[str], first: int, indent: int) -> int:
    """Blanks a function from its first line on; returns its last line."""
    end = first
    if not lines[first].rstrip().endswith("}"):
        closes = " " * indent + "}"
        end = next((i for i in range(first + 1, len(lines)) if lines[i].startswith(closes)), first)
    for i in range(first, end + 1):
        lines[i] = _blank(lines[i])
    return end
