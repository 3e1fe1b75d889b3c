"""`ninfer-serve` at a terminal shows how far loading is, and only there."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import time

from tests.fixtures.ninfer_server import SECONDS, SERVE


def shown_until(leader: int, wanted: str) -> str:
    seen, deadline = "", time.monotonic() + SECONDS
    while wanted not in seen:
        ready, _, _ = select.select([leader], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"{wanted!r} did not come: {seen!r}"
        seen += os.read(leader, 4096).decode(errors="replace")
    return seen


def test_a_terminal_shows_progress_and_ctrl_c_ends_it() -> None:
    leader, follower = pty.openpty()
    # The terminal must control the process, or Ctrl-C is only a character.
    process = subprocess.Popen(
        ["setsid", "--ctty", "--wait", *SERVE, "--demo", "--port", "0"],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    )
    os.close(follower)
    try:
        seen = shown_until(leader, "listening on http://127.0.0.1:")
        assert "loading" in seen.partition("model  ")[0]
        os.write(leader, b"\x03")
        assert process.wait(timeout=SECONDS) == 0
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        os.close(leader)
