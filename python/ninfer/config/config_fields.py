"""Typed reading of a configuration mapping whose errors name file, key, expected and found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from ninfer.config.config_value_error import ConfigValueError
from ninfer.errors import ModelFileError

# JSON has no largest integer; within these bounds arithmetic with floats cannot overflow.
MIN_INTEGER, MAX_INTEGER = -(1 << 63), (1 << 63) - 1


class ConfigFields:
    """One mapping of a file. A null value counts as absent; `key_prefix` only completes the names in errors."""

    def __init__(self, values: Mapping[str, object], file: Path, key_prefix: str = "") -> None:
        self.file = file
        self._values = values
        self._key_prefix = key_prefix

    def get(self, key: str) -> object:
        """The raw value, None where absent."""
        return self._values.get(key)

    def fail(self, key: str, expected: object, found: object) -> NoReturn:
        """Refuses the file because of this key."""
        raise ModelFileError(self.file, self._key_prefix + key, expected, found)

    def integer(self, key: str, default: int | None = None) -> int:
        """A whole number; required where no default is given."""
        value = self._present(key, "an integer", default)
        if not isinstance(value, int) or isinstance(value, bool):
            self.fail(key, "an integer", _shown(value))
        if not MIN_INTEGER <= value <= MAX_INTEGER:
            self.fail(key, "an integer of 64 bits", _shown(value))
        return value

    def size(self, key: str, default: int | None = None) -> int:
        """A whole number of at least 1; required where no default is given."""
        value = self.integer(key, default)
        if value < 1:
            self.fail(key, ">= 1", value)
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A finite number; required where no default is given."""
        value = self._present(key, "a number", default)
        if isinstance(value, int):
            return float(self.integer(key, value))
        if not isinstance(value, float) or not math.isfinite(value):
            self.fail(key, "a finite number", _shown(value))
        return value

    def boolean(self, key: str, default: bool | None = None) -> bool:
        """True or false; required where no default is given."""
        value = self._present(key, "true or false", default)
        if not isinstance(value, bool):
            self.fail(key, "true or false", _shown(value))
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """A string; required where no default is given."""
        value = self._present(key, "a string", default)
        if not isinstance(value, str):
            self.fail(key, "a string", _shown(value))
        return value

    def items(self, key: str) -> tuple[object, ...] | None:
        """A list's items, None where absent."""
        value = self._values.get(key)
        if value is not None and not isinstance(value, list | tuple):
            self.fail(key, "a list", _shown(value))
        return None if value is None else tuple(value)

    def section(self, key: str) -> ConfigFields | None:
        """A nested mapping, None where absent."""
        value = self._values.get(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self.fail(key, "a mapping", _shown(value))
        return ConfigFields(value, self.file, f"{self._key_prefix}{key}.")

    def must_be(self, key: str, *accepted: object) -> None:
        """Refuses a value that would change the computation in a way this program does not implement."""
        value = self._values.get(key)
        same = [one for one in accepted if type(one) is type(value) and one == value]
        if value is not None and not same:
            self.fail(key, " or ".join(repr(one) for one in accepted) or "absent", _shown(value))

    @contextmanager
    def naming(self, keys: Mapping[str, str]) -> Iterator[None]:
        """Turns a ConfigValueError about a field into an error about the key that `keys` says it came from."""
        try:
            yield
        except ConfigValueError as error:
            field, bracket, index = error.field.partition("[")
            self.fail(keys.get(field, field) + bracket + index, error.expected, error.found)

    def _present(self, key: str, expected: str, default: object) -> object:
        value = self._values.get(key)
        if value is None:
            value = default
        if value is None:
            self.fail(key, expected, "nothing")
        return value


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else text[:97] + "..."
