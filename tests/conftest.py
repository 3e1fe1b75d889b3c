"""What every test relies on."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """A shell starts what it runs in the background with Ctrl-C ignored, and that is inherited by every process that a
    test starts and interrupts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
