"""Every place of a source where one small change could be a mistake, and the changes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.sim.mutations.cpp_text import CppText, closing, opening

_OPERATION = {
    "<": "Less",
    "<=": "LessEqual",
    ">": "Greater",
    ">=": "GreaterEqual",
    "==": "Equal",
    "!=": "NotEqual",
    "+": "Plus",
    "-": "Minus",
}
# What somebody might have written instead.
_INSTEAD = {
    "<": ("<=", ">="),
    "<=": ("<", ">"),
    ">": (">=", "<="),
    ">=": (">", "<"),
    "==": ("!=",),
    "!=": ("==",),
    "+": ("-",),
    "-": ("+",),
}
_STATEMENT = re.compile(
    r"(?P<before>[;{}]\s*|\)\s*\n\s*|\belse\s*|\)\s)"
    r"(?P<statement>(?:\+\+|--|\*)?[A-Za-z_][\w:]*(?:(?:\.|->)\w+|\[|\(|\s[-+^|&]?=\s|\+\+|--))"
)
_KEYWORDS = re.compile(
    r"(?:if|for|while|switch|return|throw|try|catch|do|else|case|default|using|static_cast|sizeof|template)\b"
)
_MEMBER = re.compile(r"(?m)^ +(?:static |const )*[A-Za-z_][\w:<>]* \w+ = -?\d+;")
# What surely is no number, so that no compiler has to be asked.
_NO_NUMBER = re.compile(r"Refusal\b|std::nullopt|Nothing\b|\w+\.error\(\)|\*|&|refusal\b|no_step|unknown\b|stale")


@dataclass(frozen=True)
class Insertion:
    """Text that goes before `offset`. It opens something that ends at `reaches`, or closes it (no reach), or stands in
    place of [offset, end)."""

    offset: int
    text: str
    reaches: int = 0
    end: int = -1


@dataclass(frozen=True)
class Mutant:
    """One change. In the texts of its insertions `{n}` stands for its number."""

    path: str
    line: int
    kind: str
    change: str
    insertions: tuple[Insertion, ...]

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind}: {self.change}"


def mutants_of(source: CppText) -> list[Mutant]:
    finders = (_operators, _logical, _conditions, _statements, _extremes, _constants, _literals)
    return [mutant for finder in finders for mutant in finder(source)]


def _mutant(source: CppText, kind: str, change: str, *insertions: Insertion) -> Mutant:
    return Mutant(source.path, source.line_of(insertions[0].offset), kind, change, insertions)


def _operators(source: CppText) -> Iterator[Mutant]:
    for match in re.finditer(r"(?<=\S) (<=|>=|==|!=|<|>|\+|-)(?=\s)", source.code):
        operator = match.group(1)
        if re.search(r"\boperator$|[(,=]$", source.code[: match.start()].rstrip()):
            continue
        kind = "arithmetic" if operator in "+-" else "relation"
        for other in _INSTEAD[operator]:
            names = f"ninfer::mutation::{_OPERATION[operator]}, ninfer::mutation::{_OPERATION[other]}"
            marker = f" {operator} ninfer::mutation::Infix<{{n}}, {names}>{{{{}}}} {operator}"
            yield _mutant(source, kind, f"{operator} -> {other}", Insertion(match.start(), marker, end=match.end()))


def _logical(source: CppText) -> Iterator[Mutant]:
    """`a && b` is `!(!a || !b)`: flipping all three makes the one operator the other, and evaluates as it does."""
    for match in re.finditer(r" (&&|\|\|)(?=\s)", source.code):
        operator = match.group(1)
        left = _operand_begin(source.code, match.start(), operator)
        right = _operand_end(source.code, match.end(), operator)
        flip = "ninfer::mutation::flip({n}, "
        yield _mutant(
            source,
            "logical",
            f"{operator} -> {'||' if operator == '&&' else '&&'}",
            Insertion(left, flip, reaches=right[1]),
            Insertion(left, flip, reaches=match.start()),
            Insertion(match.start(), ")"),
            Insertion(right[0], flip, reaches=right[1]),
            Insertion(right[1], "))"),
        )


def _operand_begin(code: str, offset: int, operator: str) -> int:
    stops = (" ? ", " : ", " = ") if operator == "||" else (" ? ", " : ", " = ", " || ")
    position = offset
    while position > 0:
        character = code[position - 1]
        if character in ")]}":
            position = opening(code, position - 1)
            continue
        if character in "([{,;" or code.startswith(stops, position - 1) or _returns(code, position):
            break
        position -= 1
    else:
        return 0
    if code.startswith(stops, position - 1):
        position += next(len(stop) for stop in stops if code.startswith(stop, position - 1)) - 1
    return position + len(code[position:]) - len(code[position:].lstrip())


def _returns(code: str, position: int) -> bool:
    return code[:position].endswith("return ")


def _operand_end(code: str, offset: int, operator: str) -> tuple[int, int]:
    """Where the right side begins and ends."""
    begin = offset + len(code[offset:]) - len(code[offset:].lstrip())
    stops = (" && ", " || ", " ? ", " &&\n", " ||\n") if operator == "&&" else (" || ", " ? ", " ||\n")
    position = begin
    while position < len(code):
        if code[position] in "([{":
            position = closing(code, position)
        elif code[position] in ")]},;" or code.startswith(stops, position) or code.startswith(" ?", position):
            break
        position += 1
    return begin, position


def _conditions(source: CppText) -> Iterator[Mutant]:
    for match in re.finditer(r"\b(if|while) \(", source.code):
        start, end = match.end(), closing(source.code, match.end() - 1)
        start = max(start, _last_semicolon(source.code, start, end) + 1)
        condition = source.code[start:end]
        if re.match(r"\s*(?:const\b|auto\b|[A-Z][\w:]*[&*]? \w+ = )", condition) or not condition.strip():
            continue
        yield _mutant(
            source,
            "condition",
            f"{match.group(1)} ({condition.strip()}) negated",
            Insertion(start, "ninfer::mutation::flip({n}, ", reaches=end),
            Insertion(end, ")"),
        )


def _last_semicolon(code: str, start: int, end: int) -> int:
    """The last one that is not inside of brackets; start - 1 if there is none."""
    found, position = start - 1, start
    while position < end:
        if code[position] in "([{":
            position = closing(code, position)
        elif code[position] == ";":
            found = position
        position += 1
    return found


def _statements(source: CppText) -> Iterator[Mutant]:
    for match in _STATEMENT.finditer(source.code):
        start = match.start("statement")
        statement = match.group("statement")
        if _KEYWORDS.match(statement) or (statement.endswith("(") and _is_header(source.code, match.end() - 1)):
            continue
        if match.group("before").startswith(")") and not _ends_header(source.code, match.start("before")):
            continue
        end = _statement_end(source.code, start)
        if end < 0 or "return" in source.code[start:end].split("{")[0]:
            continue
        shown = " ".join(source.text[start : end + 1].split())
        guard = Insertion(start, "if (ninfer::mutation::alive({n})) {{}} else ", reaches=end)
        yield _mutant(source, "statement", f"dropped: {shown[:100]}", guard)


def _is_header(code: str, bracket: int) -> bool:
    """Whether this is the head of a function or of a constructor, not a call."""
    after = code[closing(code, bracket) + 1 :].lstrip()
    return not after.startswith((";", ".", "->", "[", ")", "=", "+", "-", "("))


def _ends_header(code: str, close: int) -> bool:
    before = code[: opening(code, close)]
    return re.search(r"\b(?:if|for|while) $", before) is not None


def _statement_end(code: str, start: int) -> int:
    position = start
    while position < len(code):
        if code[position] in "([{":
            position = closing(code, position)
        elif code[position] == ";":
            return position
        elif code[position] in ")]}":
            return -1
        position += 1
    return -1


def _extremes(source: CppText) -> Iterator[Mutant]:
    for match in re.finditer(r"\bstd::(min|max)(?=[(<])(?!_)", source.code):
        name, other = match.group(1), "max" if match.group(1) == "min" else "min"
        text = f"ninfer::mutation::{name.capitalize()}<{{n}}>::of"
        yield _mutant(source, "extreme", f"{name} -> {other}", Insertion(match.start(), text, end=match.end()))


def _constants(source: CppText) -> Iterator[Mutant]:
    for match in re.finditer(r"\breturn (?!\{)", source.code):
        end = _statement_end(source.code, match.end())
        expression = source.code[match.end() : end].strip()
        if end < 0 or not expression or "{" in expression or _NO_NUMBER.match(expression):
            continue
        if expression in ("true", "false"):
            text = "ninfer::mutation::flip({n}, "
            change = f"return {'false' if expression == 'true' else 'true'}"
        else:
            text, change = "ninfer::mutation::zero_for({n}, ", f"return 0 for {' '.join(expression.split())[:80]}"
        yield _mutant(source, "constant", change, Insertion(match.end(), text, reaches=end), Insertion(end, ")"))


def _literals(source: CppText) -> Iterator[Mutant]:
    """Numbers that are used, not those that a member has before anybody gives it one."""
    code = _MEMBER.sub(lambda match: " " * len(match.group()), source.code)
    for match in re.finditer(r"(?<![\w.'<>\[\-])(\d+)(?![\w.'>\]])", code):
        for change in (1, -1):
            text = f"ninfer::mutation::off_by({{n}}, {match.group(1)}, {change})"
            shown = f"{match.group(1)} -> {int(match.group(1)) + change}"
            yield _mutant(source, "literal", shown, Insertion(match.start(), text, end=match.end()))
