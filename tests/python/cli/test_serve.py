"""`ninfer-serve` as a process: it loads, says what it does, answers, and refuses what cannot work."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ninfer.demo import HYBRID_DIRECTORY
from tests.fixtures.ninfer_command import run
from tests.fixtures.ninfer_server import SECONDS, SERVE, free_port, ninfer_serve
from tests.python.serving.event_stream import stream_chunks

QUESTION = "count from 7 to 14."
SMALL = ("--demo", "--port", "0", "--threads", "1", "--max-context", "512", "--prefill-chunk", "64")


def chat(text: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], **more}


def test_a_streamed_answer_is_that_of_the_command() -> None:
    with ninfer_serve("--demo", "--port", "0") as server, httpx2.Client(timeout=60) as client:
        url = server.url()
        streamed = client.post(f"{url}/v1/chat/completions", json=chat(QUESTION, stream=True))
        assert server.stop() == 0
    deltas = [chunk["choices"][0]["delta"] for chunk in stream_chunks(streamed.text)]
    answer = "".join(delta.get("content", "") for delta in deltas)
    thoughts = "".join(delta.get("reasoning_content", "") for delta in deltas)
    command = run("run", QUESTION)
    assert (answer + "\n", thoughts.strip()) == (command.stdout, command.stderr.strip())
    assert answer == "7 8 9 10 11 12 13 14."


def announced_body(url: str, size: int, headers: dict[str, str]) -> bytes:
    """The answer to a body that is only announced: one that is sent may be cut off before the answer is read."""
    host, _, port = url.removeprefix("http://").partition(":")
    lines = ["POST /tokenize HTTP/1.1", "Host: x", f"Content-Length: {size}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return connection.recv(4096)


def test_every_option_reaches_what_it_is_about(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("first-secret\n\n  second-secret \r\n", encoding="utf-8")
    options = ["--kv-capacity", "1024", "--max-concurrency", "2", "--max-queued", "3", "--default-max-tokens", "5"]
    options += ["--kv-dtype", "f32", "--weights", "q8", "--cpu-isa", "scalar"]
    options += ["--api-key-file", str(keys), "--api-key", "third-secret", "--cors-origin", "https://page.example"]
    options += ["--served-model-name", "mine", "--served-model-name", "alias", "--max-body-mib", "1"]
    options += ["--headers-timeout", "3", "--body-timeout", "4.5", "--keep-alive", "7", "--max-connections", "9"]
    options += ["--send-timeout", "8", "--request-timeout", "90", "--max-header-kib", "16"]
    options += ["--parse-special-in-content", "--log-level", "debug"]
    with ninfer_serve(*SMALL, *options) as server, httpx2.Client(timeout=60) as client:
        url = server.url()
        key = {"authorization": "Bearer second-secret"}
        refused = client.get(f"{url}/v1/models", headers={"authorization": "Bearer second-secre"})
        models = client.get(f"{url}/v1/models", headers={**key, "origin": "https://page.example"})
        foreign = client.get(f"{url}/v1/models", headers={**key, "origin": "https://other.example"})
        props = client.get(f"{url}/props", headers={"x-api-key": "third-secret"}).json()
        short = client.post(f"{url}/v1/completions", headers=key, json={"prompt": "one two", "ignore_eos": True})
        large = announced_body(url, (1 << 20) + 1, key)
        assert server.stop() == 0
    assert refused.status_code == 401
    assert [model["id"] for model in models.json()["data"]] == ["mine", "alias"]
    assert models.headers["access-control-allow-origin"] == "https://page.example"
    assert "access-control-allow-origin" not in foreign.headers
    assert props["default_generation_settings"]["n_ctx"] == 512 and props["total_slots"] == 2
    assert short.json()["usage"]["completion_tokens"] == 5 and short.json()["model"] == "mine"
    assert large.startswith(b"HTTP/1.1 413 ")
    expected = {
        "threads": "1",
        "cpu isa": "scalar",
        "weights": "q8 (bf16, q8)",
        "kv dtype": "f32",
        "max context": "512 tokens",
        "kv capacity": "1024 tokens",
        "max concurrency": "2",
        "max queued": "3",
        "prefill chunk": "64 tokens",
        "default max tokens": "5",
        "model names": "mine, alias",
        "api keys": "3",
        "cors origins": "https://page.example",
        "max body": "1 MiB",
        "max headers": "16 KiB",
        "headers timeout": "3 s",
        "body timeout": "4.5 s",
        "send timeout": "8 s",
        "request timeout": "90 s",
        "keep alive": "7 s",
        "max connections": "9",
        "special tokens": "parsed in content",
        "log level": "debug",
    }
    assert {name: server.value(name) for name in expected} == expected
    assert "secret" not in "".join(server.lines + server.errors)


def test_variables_say_what_the_command_line_does_not() -> None:
    environment = {
        "NINFER_DEMO": "hybrid",
        "NINFER_PORT": "0",
        "NINFER_SERVED_MODEL_NAME": "one two",
        "NINFER_MAX_QUEUED": "7",
        "NINFER_MAX_CONTEXT": "256",
        "NINFER_PARSE_SPECIAL_IN_CONTENT": "1",
        "NINFER_THREADS": "1",
    }
    with ninfer_serve("--max-queued", "9", environment=environment) as server:
        server.url()
        assert server.stop() == 0
    assert server.value("model names") == "one, two"
    assert server.value("max queued") == "9"
    assert server.value("max context") == "256 tokens"
    assert server.value("special tokens") == "parsed in content"


def refusal(*arguments: str, environment: dict[str, str] | None = None) -> str:
    """The one line of a server that does not start."""
    with ninfer_serve(*arguments, environment=environment) as server:
        assert server.wait() == 1, server.errors
    assert server.lines == [] and len(server.errors) == 1, server.errors
    return server.errors[0].removeprefix("ninfer-serve: ")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "give either a model or --demo"),
        (["--demo", "--port", "65536"], "--port 65536 cannot be used: a whole number from 0 to 65535 works"),
        (["--demo", "--max-concurrency", "9"], "--max-concurrency 9 cannot be used: a whole number from 1 to 8 works"),
        (["--demo", "--max-queued", "0"], "--max-queued 0 cannot be used: a whole number from 1 to 1048576 works"),
        (["--demo", "--log-level", "loud"], "--log-level loud cannot be used: one of debug, info, warning, error"),
        (["--demo", "--cors-origin", "page.example"], "--cors-origin page.example cannot be used: * or an origin"),
        (["--demo", "--headers-timeout", "0"], "--headers-timeout 0.0 cannot be used: a number of seconds from 0.1"),
        (["--demo", "--body-timeout", "nan"], "--body-timeout nan cannot be used"),
        (["--demo", "--request-log", "/no/such/folder/log"], "/no/such/folder/log: No such file or directory"),
        (["--demo", "--api-key-file", "/no/such/keys"], "/no/such/keys: No such file or directory"),
        (["--demo", "--api-key-file", os.devnull], f"--api-key-file {os.devnull} cannot be used: it holds no key"),
        (["--demo", "--host", "no.such.host.invalid"], "--host no.such.host.invalid cannot be used"),
        (["--demo", "--host", "192.0.2.1"], "--host 192.0.2.1 cannot be used: Cannot assign requested address"),
        (
            ["--demo", "--max-context", "512", "--kv-capacity", "256"],
            "--max-context 512 cannot be used: a --kv-capacity of 256 tokens holds a --max-context of at most that",
        ),
        (["/no/such/model"], "/no/such/model does not exist"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(arguments: list[str], line: str) -> None:
    assert refusal(*arguments, environment={"NINFER_PORT": "0"}).startswith(line)


def test_more_connections_than_files_are_refused_before_anything_is_loaded() -> None:
    command = [*SERVE, "--demo", "--port", "0", "--max-connections", "345"]
    limited = ["sh", "-c", 'ulimit -n 600; exec "$@"', "sh", *command]
    ended = subprocess.run(limited, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("ninfer-serve: --max-connections 345 cannot be used: at most 344 works")


def test_a_variable_is_named_when_its_value_cannot_be_used() -> None:
    line = refusal("--demo", environment={"NINFER_PORT": "-1"})
    assert line == "NINFER_PORT -1 cannot be used: a whole number from 0 to 65535 works"
    with ninfer_serve("--demo", environment={"NINFER_MAX_QUEUED": "many"}) as server:
        assert server.wait() == 2
    assert len(server.errors) == 1
    assert server.errors[0].startswith("ninfer-serve: NINFER_MAX_QUEUED: ") and "many" in server.errors[0]
    with ninfer_serve("--demo", "--max-queued", "few", environment={"NINFER_MAX_QUEUED": "many"}) as server:
        assert server.wait() == 2
    assert len(server.errors) == 1 and "--max-queued" in server.errors[0] and "few" in server.errors[0]


def test_a_key_that_cannot_be_sent_is_refused_and_not_shown() -> None:
    line = refusal("--demo", "--api-key", "hush\nhush")
    assert line.startswith("--api-key (not shown) cannot be used") and "hush" not in line


def test_a_taken_port_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        # A model that cannot be loaded: whoever tried would complain about it.
        (tmp_path / "config.json").write_text("{}", encoding="utf-8")
        line = refusal(str(tmp_path), "--port", str(port))
    assert line.startswith(f"--port {port} cannot be used: another program listens on 127.0.0.1 port {port}")


def test_a_model_that_cannot_be_loaded_ends_the_server(tmp_path: Path) -> None:
    for file in HYBRID_DIRECTORY.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    line = refusal(str(tmp_path), "--port", "0")
    assert "model.safetensors" in line and "expected" in line


def test_a_model_is_called_by_the_name_of_its_folder(tmp_path: Path) -> None:
    model = tmp_path / "my model"
    model.symlink_to(HYBRID_DIRECTORY)
    folder = tmp_path / "copy"
    folder.mkdir()
    for file in HYBRID_DIRECTORY.iterdir():
        (folder / file.name).symlink_to(file)
    with ninfer_serve(str(folder), *SMALL[1:]) as server:
        server.url()
        assert server.stop() == 0
    assert server.value("model names") == "copy"


@pytest.mark.parametrize(("host", "shown"), [("localhost", "localhost"), ("::1", "[::1]"), ("0.0.0.0", "0.0.0.0")])
def test_the_line_at_the_end_is_where_it_answers(host: str, shown: str) -> None:
    if ":" in host and not _has_ipv6():
        pytest.skip("this machine has no IPv6")
    with ninfer_serve(*SMALL, "--host", host) as server:
        url = server.url()
        assert url.startswith(f"http://{shown}:")
        assert httpx2.get(f"{url}/health").json() == {"status": "ok"}
        assert server.stop() == 0
    with ninfer_serve(*SMALL, "--port", str(port := free_port())) as server:
        assert server.url() == f"http://127.0.0.1:{port}"


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def test_the_version_is_that_of_the_other_command() -> None:
    with ninfer_serve("--version") as server:
        assert server.wait() == 0
    assert server.lines == [run("--version").stdout.strip()]
