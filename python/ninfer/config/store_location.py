"""Where models that this program fetched are kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def models_directory(environment: Mapping[str, str]) -> Path:
    """`$NINFER_HOME/models`, else `$XDG_CACHE_HOME/ninfer/models`, else `~/.cache/ninfer/models`."""
    home = environment.get("NINFER_HOME")
    if home:
        return Path(home).expanduser() / "models"
    cache = environment.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "ninfer" / "models"
