"""`--demo` with and without a name behind it."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

DEMO_MODELS = ("hybrid", "smollm2")
LIKENESS = 0.7


def with_demo_value(arguments: Sequence[str]) -> list[str]:
    """The same arguments with `hybrid` after every `--demo` that is followed by nothing like the name of a demo model.

    Command-line parsers know options with a value or without one, but not `--demo [hybrid|smollm2]`. A misspelt name
    stays the option's value, so that the message about it is about a demo model.
    """
    result: list[str] = []
    for index, argument in enumerate(arguments):
        result.append(argument)
        following = arguments[index + 1] if index + 1 < len(arguments) else ""
        if argument == "--demo" and not get_close_matches(following, DEMO_MODELS, cutoff=LIKENESS):
            result.append(DEMO_MODELS[0])
    return result
