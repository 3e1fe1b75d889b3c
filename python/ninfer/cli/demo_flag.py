"""`--demo` with and without a name behind it."""

from __future__ import annotations

from collections.abc import Sequence

DEMO_MODELS = ("hybrid", "smollm2")


def with_demo_value(arguments: Sequence[str]) -> list[str]:
    """The same arguments with `hybrid` after every `--demo` that names no demo model.

    Command-line parsers know options with a value or without one, but not `--demo [hybrid|smollm2]`.
    """
    result: list[str] = []
    for index, argument in enumerate(arguments):
        result.append(argument)
        following = arguments[index + 1] if index + 1 < len(arguments) else None
        if argument == "--demo" and following not in DEMO_MODELS:
            result.append(DEMO_MODELS[0])
    return result
