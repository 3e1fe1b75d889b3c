"""Which version of the package runs."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def package_version() -> str:
    """What the installed package says; a source tree that was never installed has nothing to say it."""
    try:
        return version("ninfer")
    except PackageNotFoundError:
        return "unknown (not installed)"
