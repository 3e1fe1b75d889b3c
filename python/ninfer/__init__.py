"""NInfer: an LLM server for one machine whose prompt cache works for hybrid models."""
