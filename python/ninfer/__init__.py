"""NInfer: an LLM server for one machine whose prompt cache works for hybrid models.

`ninfer.load(path, **options)` gives an engine; see `ninfer.engine.engine`. The engine is imported when it is first
asked for, so that the parts of the package that do without the native core stay free of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ninfer.engine.engine import Engine, load

__all__ = ["Engine", "load"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'ninfer' has no attribute {name!r}")
    return getattr(import_module("ninfer.engine.engine"), name)
