"""Text on its way to a terminal: no control characters in it, and the little styling that this command line uses."""

from __future__ import annotations

import os
import unicodedata
from enum import StrEnum
from typing import TextIO


class Style(StrEnum):
    """Parameters of the ANSI sequence that selects a style."""

    PLAIN = ""
    DIM = "2"
    REASONING = "2;3"


_KEPT = "\n\t"


def visible(text: str) -> str:
    """`text` without control characters, save for newline and tab: a model must not be able to steer a terminal."""
    return "".join(one for one in text if one in _KEPT or unicodedata.category(one) != "Cc")


def one_line(text: str) -> str:
    """`visible` text on a single line, for error messages."""
    return " ".join(visible(text).split("\n"))


def write_styled(stream: TextIO, text: str, style: Style = Style.PLAIN) -> None:
    """Writes `text` as it is, between style sequences where `stream` is a terminal that may show them."""
    if text and style and _shows_styles(stream):
        text = f"\x1b[{style}m{text}\x1b[0m"
    stream.write(text)
    stream.flush()


def _shows_styles(stream: TextIO) -> bool:
    # no-color.org: a NO_COLOR that is present and not empty turns styling off.
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
