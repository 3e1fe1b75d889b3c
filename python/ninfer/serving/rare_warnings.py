"""Warnings that any client can cause as often as it likes are shown now and then."""

from __future__ import annotations

import logging

_PAUSE_S = 60.0


class RareWarnings(logging.Filter):
    """Of equal warnings one a minute. For loggers whose warnings are a few fixed texts."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno != logging.WARNING:
            return True
        text = str(record.msg)
        last = self._shown.get(text)
        if last is not None and 0 <= record.created - last < _PAUSE_S:
            return False
        self._shown[text] = record.created
        return True
