"""Where this program keeps what it can fetch or make again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def cache_directory(environment: Mapping[str, str]) -> Path:
    """`$NINFER_HOME`, else `$XDG_CACHE_HOME/ninfer`, else `~/.cache/ninfer`."""
    home = environment.get("NINFER_HOME")
    if home:
        return Path(home).expanduser()
    cache = environment.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "ninfer"


def models_directory(environment: Mapping[str, str]) -> Path:
    """`models` in the cache directory."""
    return cache_directory(environment) / "models"
