"""However `ninfer-serve` is told to stop, and whatever it is doing then: clients hear of it, and it ends in order."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ninfer.demo import HYBRID_DIRECTORY
from tests.fixtures.ninfer_server import SECONDS, ServerProcess, free_port, ninfer_serve
from tests.python.serving.event_stream import stream_chunks
from tests.python.serving.live_server import wait_until

ENDLESS = {"prompt": "one two", "max_tokens": 30_000, "ignore_eos": True}
BUSY = ("--demo", "--port", "0", "--threads", "2", "--max-concurrency", "2")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_running_and_queued_requests_get_a_last_event(number: signal.Signals) -> None:
    with (
        ninfer_serve(*BUSY, "--max-queued", "2") as server,
        httpx2.Client(timeout=SECONDS) as client,
        ThreadPoolExecutor(2) as threads,
    ):
        url = f"{server.url()}/v1/completions"
        ask = client.build_request("POST", url, json={**ENDLESS, "stream": True})
        streams, texts, begun = [], [], ["", "", ""]
        for number_of_stream in range(3):
            streams.append(client.send(ask, stream=True))
            texts.append(streams[-1].iter_text())
            if number_of_stream < 2:
                begun[number_of_stream] = next(texts[-1])
        # One of two finds the queue full, so the other one is in it.
        asked = [threads.submit(httpx2.post, url, json=ENDLESS, timeout=SECONDS) for _ in range(2)]
        [full], [queued] = wait(asked, SECONDS, FIRST_COMPLETED)
        assert full.result().status_code == 429
        assert server.stop(number) == 0
        ends = [first + "".join(text) for first, text in zip(begun, texts, strict=True)]
        refused = queued.result(SECONDS)
    for stream in ends:
        error = stream_chunks(stream)[-1]["error"]
        assert "shutdown" in error["message"] and error["code"] == "unavailable"
    assert refused.status_code == 503 and "shutdown" in refused.json()["error"]["message"]
    assert [line for line in server.errors if "Traceback" in line or "ERROR" in line] == []


def test_an_idle_server_ends_at_once_and_frees_its_port() -> None:
    with ninfer_serve(*BUSY) as server:
        host, _, port = server.url().removeprefix("http://").partition(":")
        # A client that only keeps its connection.
        with socket.create_connection((host, int(port))), httpx2.Client() as client:
            assert client.get(f"http://{host}:{port}/health").status_code == 200
            assert server.stop() == 0
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, int(port)))
    assert server.errors == []


@pytest.fixture
def never_loaded(tmp_path: Path) -> Path:
    """A model whose weights wait for a writer that never comes."""
    for file in HYBRID_DIRECTORY.iterdir():
        if file.name == "tokenizer.json":
            os.mkfifo(tmp_path / file.name)
        else:
            (tmp_path / file.name).symlink_to(file)
    return tmp_path


def answers(url: str) -> httpx2.Response:
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            return httpx2.get(url)
        except httpx2.ConnectError:
            assert time.monotonic() < deadline, "the server did not begin"
            time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_while_a_model_loads_every_request_hears_so_and_a_signal_still_ends_it(
    never_loaded: Path, number: signal.Signals
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with ninfer_serve(str(never_loaded), "--port", str(port), "--served-model-name", "slow") as server:
        health = answers(f"{url}/health")
        posted = httpx2.post(f"{url}/v1/chat/completions", json={"messages": []})
        unknown = httpx2.get(f"{url}/nope")
        assert server.stop(number) == 0
    assert health.json()["status"] == "loading"
    for response in (health, posted, unknown):
        assert response.status_code == 503
        assert response.json()["error"] == {
            "message": "slow is loading",
            "type": "unavailable_error",
            "param": None,
            "code": "unavailable",
        }
    assert posted.headers["retry-after"] == "1"
    assert server.lines == []


def wait_until_computing(server: ServerProcess) -> None:
    """Returns once the process has used half a second of CPU time more than now."""

    def cpu_seconds() -> float:
        fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before = cpu_seconds()
    wait_until(lambda: cpu_seconds() - before > 0.5, SECONDS)


def test_a_template_that_never_ends_does_not_keep_the_process(tmp_path: Path) -> None:
    template = tmp_path / "endless.jinja"
    loops = "{% for a in range(99999) %}" * 3 + "{% endfor %}" * 3
    template.write_text(loops, encoding="utf-8")
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}]}
    with ninfer_serve(*BUSY, "--chat-template", str(template)) as server, ThreadPoolExecutor(1) as threads:
        url = server.url()
        waiting = threads.submit(httpx2.post, f"{url}/v1/chat/completions", json=body, timeout=SECONDS)
        wait_until_computing(server)
        assert httpx2.get(f"{url}/health", timeout=SECONDS).status_code == 200
        assert server.stop() == 0
        refused = waiting.result(SECONDS)
    assert refused.status_code == 503 and refused.json()["error"]["message"] == "the engine has stopped"


def test_a_unit_that_takes_minutes_keeps_neither_its_client_nor_the_process() -> None:
    slow = ("--cpu-isa", "scalar", "--prefill-chunk", "16384", "--kv-capacity", "32768")
    body = {"prompt": [5] * 16_384, "stream": True, "max_tokens": 4}
    with ninfer_serve(*BUSY, *slow) as server, httpx2.Client(timeout=SECONDS) as client:
        request = client.build_request("POST", f"{server.url()}/v1/completions", json=body)
        stream = client.send(request, stream=True)
        wait_until_computing(server)
        assert server.stop() == 0
        error = stream_chunks("".join(stream.iter_text()))[-1]["error"]
    assert "shutdown" in error["message"]
    assert any("the engine is still computing after 3.0 s" in line for line in server.errors)


@contextmanager
def a_body_that_does_not_come(url: str) -> Iterator[None]:
    """The server reads the request by the time that the block begins, since it reads what came first first."""
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
        for _ in range(2):
            assert httpx2.get(f"{url}/health", timeout=SECONDS).status_code == 200
        yield


def refuses_connections(url: str) -> bool:
    try:
        httpx2.get(f"{url}/health", timeout=SECONDS)
    except httpx2.TransportError:
        return True
    return False


def test_a_second_signal_does_not_wait() -> None:
    with ninfer_serve(*BUSY) as server, a_body_that_does_not_come(url := server.url()):
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: refuses_connections(url), SECONDS)
        assert server.process.poll() is None
        assert server.stop(signal.SIGTERM) == 128 + signal.SIGTERM


def test_a_body_that_does_not_come_keeps_the_process_no_longer_than_it_may() -> None:
    with ninfer_serve(*BUSY) as server, a_body_that_does_not_come(server.url()):
        assert server.stop() == 0


def test_a_download_ends_with_its_server(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as index:
        index.settimeout(SECONDS)
        address = f"http://127.0.0.1:{index.getsockname()[1]}/simple"
        environment = {"NINFER_HOME": str(tmp_path), "PIP_INDEX_URL": address, "PIP_CONFIG_FILE": os.devnull}
        port = free_port()
        with ninfer_serve("--demo", "smollm2", "--port", str(port), environment=environment) as server:
            pip, _ = index.accept()
            with pip:
                pip.settimeout(SECONDS)
                assert httpx2.get(f"http://127.0.0.1:{port}/health").json()["status"] == "loading"
                assert server.stop() == 0
                while pip.recv(4096):
                    pass


# The loading ends and the signal arrives in one turn of the event loop.
STOPPED_WHEN_LOADED = """
import signal
from ninfer.cli import serve, server_process

class Remembered(server_process.StopSignals):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        Remembered.made = self

start_loading = server_process.ServerProcess._start_loading

def loading_that_is_stopped(self):
    loading = start_loading(self)
    loading.add_done_callback(lambda _: Remembered.made._stop(signal.SIGTERM))
    return loading

server_process.StopSignals = Remembered
server_process.ServerProcess._start_loading = loading_that_is_stopped
serve()
"""


def test_a_model_that_is_loaded_when_the_signal_comes_is_not_served() -> None:
    with ninfer_serve(*BUSY, command=[sys.executable, "-u", "-c", STOPPED_WHEN_LOADED]) as server:
        assert server.wait() == 0
    assert (server.lines, server.errors) == ([], [])
