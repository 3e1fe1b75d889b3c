"""Finds the function bodies of a C++ file without a compiler: name, first line, length and number of parameters.

It reads braces, not grammar. What it gets wrong is known and harmless: lambdas count as part of the function around
them, and a brace initialiser in a constructor's initialiser list is taken for a one-line function.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_NOISE = re.compile(
    r"""//[^\n]* | /\*.*?\*/ | R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)" | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])+'
    | ^[ \t]*\#(?:\\\n|[^\n])*""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_DIGIT_SEPARATOR = re.compile(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])")
_SCOPE = re.compile(r"\b(namespace|class|struct|union|enum)\b(?!.*\()|\bextern\s*$", re.DOTALL)
_ATTRIBUTE = re.compile(
    r"__attribute__\s*\(\(.*?\)\)|alignas\s*\([^()]*\)|\[\[.*?\]\]|decltype\s*\([^()]*\)", re.DOTALL
)
_BEFORE_DECLARATION = re.compile(r"(\s|\b(public|private|protected)\s*:(?!:))*")
_NAME = re.compile(r"(operator\s*\(\)|operator\s*[^\s(]+|[~\w:]+)\s*$")


@dataclass(frozen=True)
class CppFunction:
    """A function body. `first_line` counts from 1 and is the line where its declaration starts."""

    name: str
    first_line: int
    lines: int
    parameters: int


def cpp_functions(text: str) -> list[CppFunction]:
    """Every function body of the file, in the order of their closing braces."""
    return list(_scan(_blank_noise(text)))


def _blank_noise(text: str) -> str:
    """The text without comments, strings and preprocessor lines; line numbers stay."""
    text = _DIGIT_SEPARATOR.sub("_", text)
    return _NOISE.sub(lambda match: "\n" * match[0].count("\n") or " ", text)


def _scan(text: str) -> Iterator[CppFunction]:
    open_blocks: list[tuple[str, str, int]] = []  # kind, header, first line
    inside_function = False
    header_start = 0
    for position, char in _structure(text):
        if char == "{":
            header = text[header_start:position]
            kind = "inner" if inside_function else _kind_of(header)
            blank = len(_BEFORE_DECLARATION.match(header)[0])  # type: ignore[index]  # the pattern matches the empty text
            first_line = text.count("\n", 0, header_start + blank) + 1
            open_blocks.append((kind, header, first_line))
            inside_function = inside_function or kind == "function"
        elif char == "}" and open_blocks:
            kind, header, first_line = open_blocks.pop()
            if kind == "function":
                inside_function = False
                name, parameters = _name_and_parameters(header)
                yield CppFunction(name, first_line, text.count("\n", 0, position) + 2 - first_line, parameters)
        header_start = position + 1


def _structure(text: str) -> Iterator[tuple[int, str]]:
    """The braces and semicolons outside of parentheses; a lambda or a brace inside a call is skipped with the call."""
    depth = 0
    for match in re.finditer(r"[(){};]", text):
        char = match[0]
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif depth == 0:
            yield match.start(), char


def _kind_of(header: str) -> str:
    bare = _without_template(header)
    if _SCOPE.search(bare):
        return "scope"
    return "function" if "(" in bare else "other"


def _without_template(header: str) -> str:
    """Drops `template <...>` at the start and labels such as `public:`."""
    bare = re.sub(r"\b(public|private|protected)\s*:(?!:)", " ", _ATTRIBUTE.sub(" ", header)).strip()
    while match := re.match(r"template\s*<", bare):
        depth, end = 1, match.end()
        while depth and end < len(bare):
            depth += {"<": 1, ">": -1}.get(bare[end], 0)
            end += 1
        bare = bare[end:].strip()
    return bare


def _name_and_parameters(header: str) -> tuple[str, int]:
    bare = _without_template(header)
    start = bare.index("(")
    if re.search(r"operator\s*$", bare[:start]):
        start = bare.index("(", start + 1)
    match = _NAME.search(bare[:start])
    depth, end = 1, start + 1
    while depth and end < len(bare):
        depth += {"(": 1, ")": -1}.get(bare[end], 0)
        end += 1
    return (match[1] if match else "(unnamed)"), _count_parameters(bare[start + 1 : end - 1])


def _count_parameters(inside: str) -> int:
    if inside.strip() in ("", "void"):
        return 0
    depth, count = 0, 1
    for char in inside.replace("->", "  "):
        depth += {"(": 1, "<": 1, "{": 1, "[": 1, ")": -1, ">": -1, "}": -1, "]": -1}.get(char, 0)
        count += char == "," and depth == 0
    return count
