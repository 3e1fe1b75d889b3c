"""The error of a configuration value that cannot be, and the check that raises it."""

from __future__ import annotations


class ConfigValueError(ValueError):
    """A configuration value that cannot be; file readers turn it into an error that also names file and key."""

    def __init__(self, field: str, expected: str, found: object) -> None:
        self.field = field
        self.expected = expected
        self.found = found
        super().__init__(f"{field}: expected {expected}, found {found}")


def require(holds: bool, field: str, expected: str, found: object) -> None:
    """Raises ConfigValueError unless `holds`."""
    if not holds:
        raise ConfigValueError(field, expected, found)
