"""How many files, and so how many connections, this process may have open."""

from __future__ import annotations

import resource
from contextlib import suppress

from ninfer.errors import OptionError

# For what is no connection within the limit: standard streams, model files, logs, downloads, connections turned away.
_RESERVE = 256


def allow_connections(count: int) -> None:
    """Raises the limit of the process as far as the system lets it; OptionError if that is too little for `count`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # Some systems have a lower limit yet than the one they state.
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or count + _RESERVE <= soft:
        return
    most = soft - _RESERVE
    works = f"at most {most} works" if most > 0 else "nothing works"
    raise OptionError("max_connections", count, f"{works} where a process may open {soft} files (`ulimit -Hn`)")
