"""`ninfer chat` at a real terminal: prompt, answers, Ctrl-C and Ctrl-D."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.fixtures.ninfer_command import COMMAND, SECONDS

CTRL_C, CTRL_D = b"\x03", b"\x04"
INTERRUPTS = 6


@dataclass
class Session:
    """A process whose terminal is a pseudo-terminal of ours."""

    process: subprocess.Popen[bytes]
    leader: int
    unread: str = ""

    def type(self, keys: bytes) -> None:
        os.write(self.leader, keys)

    def read_until(self, wanted: str) -> str:
        """What the terminal shows up to and including `wanted`; what came after it is for the next call."""
        deadline = time.monotonic() + SECONDS
        while wanted not in self.unread:
            self._read(wanted, deadline)
        before, _, self.unread = self.unread.partition(wanted)
        return before + wanted

    def wait_for_more(self) -> None:
        """Until the terminal shows anything that was not read yet."""
        while not self.unread:
            self._read("anything more", time.monotonic() + SECONDS)

    def _read(self, wanted: str, deadline: float) -> None:
        ready, _, _ = select.select([self.leader], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"{wanted!r} did not come: {self.unread!r}"
        try:
            self.unread += os.read(self.leader, 4096).decode(errors="replace")
        except OSError as error:  # the process is gone
            raise AssertionError(f"{wanted!r} did not come: {self.unread!r}") from error


@contextmanager
def chat_session(*arguments: str) -> Iterator[Session]:
    leader, follower = pty.openpty()
    # The terminal must control the process, or Ctrl-C is only a character.
    process = subprocess.Popen(
        ["setsid", "--ctty", "--wait", *COMMAND, "chat", *arguments], stdin=follower, stdout=follower, stderr=follower
    )
    os.close(follower)
    try:
        yield Session(process, leader)
    finally:
        process.kill()
        process.wait()
        os.close(leader)


def test_a_terminal_shows_prompt_and_answer() -> None:
    with chat_session("--demo") as session:
        seen = session.read_until("> ")
        session.type(b"what is 25 minus 16?\n")
        seen += session.read_until("25 minus 16 is 9.")
        session.read_until("> ")
        session.type(CTRL_D)
        assert session.process.wait(timeout=SECONDS) == 0
    assert "/exit" in seen


def test_ctrl_c_stops_an_answer_and_the_next_question_is_answered() -> None:
    # So hot that every token is as likely as any other; this seed picks no end token in its first 3,000. A Ctrl-C that
    # came after the answer would end the chat.
    with chat_session("--demo", "--temperature", "10000", "--seed", "2", "--max-tokens", "3000") as session:
        session.read_until("> ")
        for number in range(INTERRUPTS):
            session.type(b"hello.\n")
            session.read_until("hello.\r\n")
            # Not before the line has been read; then at several moments of the answer.
            time.sleep(0.05 + 0.02 * number)
            session.type(CTRL_C)
            session.read_until("(stopped; this turn is forgotten)")
            session.read_until("> ")
        session.type(b"hello.\n")
        session.read_until("[prompt ")
        session.read_until("> ")
        session.type(CTRL_D)
        assert session.process.wait(timeout=SECONDS) == 0
