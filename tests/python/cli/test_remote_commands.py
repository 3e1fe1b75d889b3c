"""`ninfer chat --url` and `ninfer run --url` against a server of ours: the same as without, over HTTP."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.ninfer_command import SECONDS, run
from tests.fixtures.ninfer_server import free_port, ninfer_serve
from tests.python.cli.test_terminal_session import CTRL_C, CTRL_D, chat_session

KEY = "sesame"
COST = r"\[prompt (\d+) tokens, cached (.+?), computed (\d+) at \d+/s; answer \d+ at \d+/s; stop\]"
LINES = "my name is Karin.\nwhat is my name?\n/clear\nwhat is 12 plus 30?\n"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server") / "requests.jsonl"


@pytest.fixture(scope="module")
def url(log: Path) -> Iterator[str]:
    with ninfer_serve("--demo", "--port", "0", "--api-key", KEY, "--request-log", str(log)) as server:
        yield server.url()
        assert server.stop() == 0


def without_costs(text: str) -> str:
    """How fast, and how much was reused, is the server's own affair."""
    return re.sub(r" at \d+/s", "", re.sub(r"cached .*?, computed \d+", "", text))


def test_a_remote_conversation_is_the_local_one(url: str) -> None:
    local = run("chat", "--demo", text=LINES)
    remote = run("chat", "--url", url, "--api-key", KEY, text=LINES)
    assert remote.returncode == 0, remote.stderr
    assert without_costs(remote.stdout) == without_costs(local.stdout)
    assert "your name is Karin." in remote.stdout
    assert len(re.findall(COST, local.stdout)) == len(re.findall(COST, remote.stdout)) == 3


def test_what_is_reused_is_said_in_the_same_words(url: str) -> None:
    """Of a conversation that nobody else begins like."""
    system = ("--system", "you answer in few words and never guess what was not said before.")
    costs = [
        re.findall(COST, run("chat", *where, *system, text=LINES).stdout)
        for where in (("--demo",), ("--url", url, "--api-key", KEY))
    ]
    assert costs[0] == costs[1] and len(costs[0]) == 3
    assert costs[0][0][1] == "0" and all("device, " in cached for _, cached, _ in costs[0][1:])


def test_options_reach_the_server(url: str) -> None:
    environment = {"NINFER_API_KEY": KEY}
    local = run("chat", "--demo", "--no-thinking", "--max-tokens", "3", text=LINES)
    remote = run("chat", "--url", url, "--no-thinking", "--max-tokens", "3", text=LINES, environment=environment)
    assert without_costs(remote.stdout) == without_costs(local.stdout)
    hot = ["--temperature", "2", "--seed", "11"]
    assert run("run", "hello.", *hot).stdout == run("run", "hello.", *hot, "--url", url, environment=environment).stdout


def test_one_answer_goes_to_stdout(url: str) -> None:
    result = run("run", "count from 7 to 14.", "--url", f"{url}/v1", "--api-key", KEY, "--model", "hybrid")
    assert result.stdout == "7 8 9 10 11 12 13 14.\n", result.stderr
    assert result.stderr.strip(), "the reasoning is expected on stderr"


def test_what_the_server_refuses_is_one_line(url: str) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    for arguments, message in (
        (["--url", url], f"{url}/v1 answered 401: the API key is missing or wrong"),
        (["--url", url, "--api-key", KEY, "--model", "other"], "answered 404: the model 'other' is not served here"),
        (["--url", nobody], f"{nobody}/v1: "),
        (["--url", "here"], "--url here cannot be used: an address such as http://127.0.0.1:8080 works"),
        (["--url", url, "--demo"], f"--url {url} cannot be used: either --url or --demo works, not both"),
    ):
        result = run("run", "hello.", *arguments)
        assert (result.returncode, result.stdout) == (1, "")
        assert message in result.stderr and result.stderr.count("\n") == 1


def test_ctrl_c_leaves_the_answer_and_the_server_notices(url: str, log: Path) -> None:
    endless = ("--temperature", "10000", "--seed", "2", "--max-tokens", "20000")
    with chat_session("--url", url, "--api-key", KEY, *endless) as session:
        session.read_until("> ")
        session.type(b"hello.\n")
        session.read_until("hello.\r\n")
        session.wait_for_more()  # the answer has begun, and goes on for thousands of tokens
        session.type(CTRL_C)
        session.read_until("(stopped; this turn is forgotten)")
        session.read_until("> ")
        deadline = time.monotonic() + SECONDS
        while "client_left" not in log.read_text("utf-8"):
            assert time.monotonic() < deadline, "the server did not notice"
            time.sleep(0.05)
        session.type(CTRL_D)
        assert session.process.wait(timeout=SECONDS) == 0
    left = [line for line in map(json.loads, log.read_text("utf-8").splitlines()) if line["end"] == "client_left"]
    assert [line["status"] for line in left] == [499]
