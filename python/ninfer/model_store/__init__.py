"""From what a user calls a model to a path on this machine."""
