"""Typed errors of the Python shell.

    NinferError
    ├── ModelFileError        a model file is damaged, incomplete, foreign or unsupported
    ├── ModelNotFoundError    a model name or path leads nowhere
    ├── OptionError           an option has an impossible value or combination
    ├── RequestError          a request cannot be served as it was asked
    ├── CapacityError         the machine or the configured pools are too small
    ├── QueueFullError        too many requests wait already; a later try may succeed
    ├── EngineFailedError     the engine computes no more: it failed or was stopped
    ├── FetchError            a download failed or did not match its pinned hash
    └── RemoteError           a server that was asked over HTTP cannot be reached, refuses, or broke off

An expected "no" of the core (no room, stale handle) is a returned value, never one of these.
"""

from __future__ import annotations

from pathlib import Path


class NinferError(Exception):
    """Base class of every error that NInfer raises on purpose."""


class ModelFileError(NinferError):
    """A model file does not hold what it must: names the file, the key, what was expected and what was found."""

    def __init__(self, file: str | Path, key: str, expected: object, found: object) -> None:
        self.file = str(file)
        self.key = key
        self.expected = expected
        self.found = found
        super().__init__(f"{file}: {key}: expected {expected}, found {found}")


class ModelNotFoundError(NinferError):
    """No model at this path or under this name; the message says where was looked and what would work."""


class OptionError(NinferError):
    """An option's value, or its combination with others, cannot work; says what would."""

    def __init__(self, option: str, value: object, works: str) -> None:
        self.option = option
        self.value = value
        self.works = works
        super().__init__(f"{option}={value!r} cannot be used: {works}")


class RequestError(NinferError):
    """A request names a field or value that cannot be served; `param` is the field's name."""

    def __init__(self, param: str, message: str) -> None:
        self.param = param
        super().__init__(f"{param}: {message}")


class CapacityError(NinferError):
    """The memory at hand or a configured pool is too small; the message holds both numbers."""


class QueueFullError(NinferError):
    """As many requests wait as may wait; `retry_after` is the number of seconds after which one may have ended."""

    def __init__(self, waiting: int, retry_after: int) -> None:
        self.retry_after = retry_after
        super().__init__(f"the queue is full with {waiting} requests; try again in {retry_after} s")


class EngineFailedError(NinferError):
    """The engine takes no more requests, because it failed or was stopped; the message says which and why."""


class FetchError(NinferError):
    """A download failed, or its bytes do not match the pinned hash; nothing was left half-done."""


class RemoteError(NinferError):
    """A server that was asked over HTTP did not answer: names its address, and what it said if it said anything."""
