"""The runner of every check. It needs nothing but the standard library, so that it can say what else is missing."""
