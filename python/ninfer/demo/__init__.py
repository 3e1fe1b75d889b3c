"""The small hybrid chat model that ships inside the package, so that a demo needs no network."""

from __future__ import annotations

from pathlib import Path

HYBRID_DIRECTORY = Path(__file__).parent / "hybrid"
