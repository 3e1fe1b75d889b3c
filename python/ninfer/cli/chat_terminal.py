"""The lines that a user types, and the answers on the terminal."""

from __future__ import annotations

import sys
from contextlib import closing

from ninfer.cli.conversation import Conversation
from ninfer.cli.terminal_text import Style, one_line, visible, write_styled
from ninfer.errors import RemoteError, RequestError

_HELP = "/clear forgets the conversation, /exit or Ctrl-D ends it, Ctrl-C stops an answer."


class ChatTerminal:
    """Reads turns from stdin until it ends.

    At a terminal a refused turn is reported and the chat goes on. Elsewhere nobody can ask again:
    the refusal is raised.
    """

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._interactive = sys.stdin.isatty()

    def run(self) -> None:
        """Raises RequestError or RemoteError for a refused turn unless stdin is a terminal."""
        if self._interactive:
            import readline  # noqa: F401  (line editing and history for input())

            self._note(_HELP)
        while (text := self._read()) is not None:
            if text in ("/exit", "/quit"):
                return
            if text == "/clear":
                self._conversation.clear()
            elif text in ("/help", "/?"):
                self._note(_HELP)
            elif text:
                self._turn(text)

    def _read(self) -> str | None:
        try:
            return input("> " if self._interactive else "").strip()
        except EOFError:
            return None
        except KeyboardInterrupt:
            self._note("")
            return None

    def _turn(self, text: str) -> None:
        try:
            self._answer(text)
        except KeyboardInterrupt:
            self._note("\n(stopped; this turn is forgotten)")
        except (RequestError, RemoteError) as error:
            if not self._interactive:
                raise
            print(one_line(str(error)), file=sys.stderr, flush=True)

    def _answer(self, text: str) -> None:
        thinking = False
        with closing(self._conversation.say(text)) as deltas:
            for delta in deltas:
                write_styled(sys.stdout, visible(delta.reasoning), Style.REASONING)
                thinking = thinking or bool(delta.reasoning)
                if delta.content and thinking:
                    write_styled(sys.stdout, "\n\n")
                    thinking = False
                write_styled(sys.stdout, visible(delta.content))
        assert self._conversation.last is not None
        write_styled(sys.stdout, "\n")
        self._note(self._conversation.last.line())

    def _note(self, text: str) -> None:
        write_styled(sys.stdout, text, Style.DIM)
        write_styled(sys.stdout, "\n")
