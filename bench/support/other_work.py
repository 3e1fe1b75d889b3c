"""How much of the machine others use while something is measured."""

from __future__ import annotations

import os
import time
from pathlib import Path

# A part of all CPU time. Where others use more, a missed limit says nothing about what is measured.
MOST_OTHER_WORK = 0.1


class OtherWork:
    """Begins to look when it is made. Processes that this one has started and waited for are its own."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._others_s = _busy_s() - _own_s()

    def share(self) -> float:
        """The part of all CPU time since then that others used, from 0 to 1. Time that a host took away counts too."""
        elapsed_s = (time.monotonic() - self._began) * (os.cpu_count() or 1)
        return max(_busy_s() - _own_s() - self._others_s, 0.0) / elapsed_s


def _busy_s() -> float:
    """Of all CPUs and processes since the system began."""
    user, nice, system, _idle, _waiting, *more = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:])
    # Interrupts, soft interrupts, and what the host took. What stands behind them is counted as user time already.
    return (user + nice + system + sum(more[:3])) / os.sysconf("SC_CLK_TCK")


def _own_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
