"""NInfer: an LLM server for one machine whose prompt cache works for hybrid models."""

from ninfer.engine.engine import Engine, load

__all__ = ["Engine", "load"]
