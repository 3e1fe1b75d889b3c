"""What a model says reaches the terminal as it is, except for what would steer the terminal."""

from __future__ import annotations

import io
from collections.abc import Generator

import pytest

from ninfer.cli.chat_terminal import ChatTerminal
from ninfer.cli.conversation import Conversation, Message
from ninfer.cli.terminal_text import Style, one_line, visible, write_styled
from ninfer.cli.turn_cost import TurnCost
from ninfer.errors import RequestError
from ninfer.frontend.reasoning_parser import ReasoningDelta

HOSTILE = "a\tb :smile: [red]c[/red] \x1b[31md\x07\x08\x9b2J\x7f\r\ne\u00e9\u2605"
HARMLESS = "a\tb :smile: [red]c[/red] [31md2J\ne\u00e9\u2605"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class ScriptedConversation(Conversation):
    """Says its script for every turn; a turn that is called `refuse` is refused."""

    def __init__(self, script: list[ReasoningDelta]) -> None:
        super().__init__()
        self.script = script

    def _answer(self, messages: list[Message]) -> Generator[ReasoningDelta]:
        if messages[-1]["content"] == "refuse":
            raise RequestError("messages", "refused")
        yield from self.script
        self.last = TurnCost(9, 4, 5, 7, "stop", prompt_rate=123.4, answer_rate=None)


def talk(
    monkeypatch: pytest.MonkeyPatch, lines: str, script: list[ReasoningDelta], streams: tuple[io.StringIO, io.StringIO]
) -> None:
    stdin, stdout = streams
    stdin.write(lines)
    stdin.seek(0)
    monkeypatch.setattr("sys.stdin", stdin)
    monkeypatch.setattr("sys.stdout", stdout)
    ChatTerminal(ScriptedConversation(script)).run()


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_answers_keep_their_text_and_lose_control_characters(
    monkeypatch: pytest.MonkeyPatch, kind: type[io.StringIO]
) -> None:
    stdout = kind()
    talk(monkeypatch, "hello\n", [ReasoningDelta(content=HOSTILE)], (io.StringIO(), stdout))
    assert stdout.getvalue().startswith(f"{HARMLESS}\n")


def test_reasoning_is_styled_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    script = [ReasoningDelta(reasoning=HOSTILE), ReasoningDelta(content="said")]
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal, pipe, plain = Terminal(), io.StringIO(), Terminal()
    talk(monkeypatch, "hello\n", script, (io.StringIO(), terminal))
    talk(monkeypatch, "hello\n", script, (io.StringIO(), pipe))
    monkeypatch.setenv("NO_COLOR", "1")
    talk(monkeypatch, "hello\n", script, (io.StringIO(), plain))
    assert terminal.getvalue().startswith(f"\x1b[2;3m{HARMLESS}\x1b[0m\n\nsaid\n")
    assert pipe.getvalue().startswith(f"{HARMLESS}\n\nsaid\n")
    assert "\x1b" not in pipe.getvalue() and "\x1b" not in plain.getvalue()


def test_a_refused_turn_ends_a_pipe_but_not_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = [ReasoningDelta(content="said")]
    pipe, terminal = io.StringIO(), io.StringIO()
    with pytest.raises(RequestError, match="refused"):
        talk(monkeypatch, "refuse\nhello\n", script, (io.StringIO(), pipe))
    assert "said" not in pipe.getvalue()
    talk(monkeypatch, "refuse\nhello\n", script, (Terminal(), terminal))
    assert "said" in terminal.getvalue() and "refused" not in terminal.getvalue()
    assert capsys.readouterr().err == "messages: refused\n"


def test_every_control_character_but_newline_and_tab_is_removed() -> None:
    controls = [*range(0x20), *range(0x7F, 0xA0)]
    assert visible("".join(map(chr, controls))) == "\t\n"
    text = "".join(chr(code) for code in range(0x3000) if code not in controls)
    assert visible(text) == text
    assert one_line("a\nb\x1b[0m") == "a b[0m"


def test_nothing_is_not_styled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    write_styled(stream, "", Style.DIM)
    assert stream.getvalue() == ""
