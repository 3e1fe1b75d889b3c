"""From what a user calls a model to a path."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha1, sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from ninfer.config.store_location import models_directory
from ninfer.demo import HYBRID_DIRECTORY
from ninfer.errors import ModelNotFoundError
from ninfer.model_store.model_store import ModelStore, StoreEntry
from ninfer.model_store.model_summary import summarise_model
from ninfer.model_store.resolve import resolve_model

REPOSITORY = "some-org/demo"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def add_model(store: ModelStore, name: str, content: bytes) -> Path:
    with store.changing(name, lambda: None) as change:
        directory = change.work / "complete"
        directory.mkdir()
        (directory / "x.gguf").write_bytes(content)
        digest = sha256(content).hexdigest()
        return change.publish(directory, StoreEntry(name, "x.gguf", len(content), digest, "a test", "Apache-2.0"))


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "home" / "models")


def test_paths_win(store: ModelStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve_model(str(HYBRID_DIRECTORY), store) == HYBRID_DIRECTORY
    (tmp_path / "x.gguf").write_bytes(b"GGUF")
    assert resolve_model(str(tmp_path / "x.gguf"), store) == tmp_path / "x.gguf"
    (tmp_path / "org" / "name").mkdir(parents=True)
    (tmp_path / "org" / "name" / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert resolve_model("org/name", store) == Path("org/name")


def test_names_of_the_store(store: ModelStore) -> None:
    path = add_model(store, "mine", b"bytes")
    assert resolve_model("mine", store) == path
    assert [model.entry.name for model in store.list_models()] == ["mine"]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("absent.gguf", "does not exist"),
        ("./absent", "does not exist"),
        ("/absent/model", "does not exist"),
        ("a/b/c", "does not exist"),
        ("smollm2", "ninfer models pull smollm2"),
        ("other", "smollm2"),
        ("..", "config.json"),
        ("bad name/x", "not a Hugging Face repository name"),
    ],
)
def test_what_leads_nowhere_is_refused_with_what_would_work(
    store: ModelStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelNotFoundError, match=message):
        resolve_model(model, store)


def test_files_of_other_kinds_are_refused(store: ModelStore, tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"")
    with pytest.raises(ModelNotFoundError, match=r"nor a \.gguf file"):
        resolve_model(str(tmp_path / "x.bin"), store)


def test_removal_takes_everything_and_only_that(store: ModelStore) -> None:
    add_model(store, "one", b"1")
    kept = add_model(store, "two", b"22")
    assert store.remove("one").entry.file_bytes == 1
    assert not (store.root / "one").exists()
    assert kept.read_bytes() == b"22"
    with pytest.raises(ModelNotFoundError, match="two"):
        store.remove("one")


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", ".partial", "a\0b"])
def test_names_cannot_lead_out_of_the_store(store: ModelStore, name: str) -> None:
    add_model(store, "one", b"1")
    assert store.find(name) is None
    with pytest.raises(ModelNotFoundError):
        store.remove(name)


def test_incomplete_entries_are_no_models(store: ModelStore) -> None:
    path = add_model(store, "one", b"1234")
    path.write_bytes(b"123")
    assert store.find("one") is None
    path.write_bytes(b"1234")
    (path.parent / "entry.json").write_text("{")
    assert store.find("one") is None


def test_the_store_lies_where_the_environment_says() -> None:
    assert models_directory({"NINFER_HOME": "/data/ninfer"}) == Path("/data/ninfer/models")
    assert models_directory({"XDG_CACHE_HOME": "/cache"}) == Path("/cache/ninfer/models")
    assert models_directory({}) == Path.home() / ".cache" / "ninfer" / "models"


def test_a_summary_counts_what_is_stored() -> None:
    summary = summarise_model(HYBRID_DIRECTORY)
    assert summary.encodings == {"BF16": summary.parameters}
    assert summary.stored_bytes == 2 * summary.parameters
    assert 1_100_000 < summary.parameters < 1_300_000


class Hub:
    """As much of the Hugging Face hub as a snapshot download asks for: one repository with the demo model."""

    def __init__(self) -> None:
        self.files = {file.name: file.read_bytes() for file in HYBRID_DIRECTORY.iterdir()}
        self.files["additional_chat_templates/tool_use.jinja"] = b"{{ tools }}"
        self.files["additional_chat_templates/other.jinja"] = b"nobody asks for it"
        self.files["original/model.safetensors"] = b"a second copy"
        self.files["original/config.json"] = b"{}"
        self.files["chat_template.json"] = b"{}"
        self.files["pytorch_model.bin"] = b"a pickle that nobody wants"
        self.files["modeling_code.py"] = b"raise SystemExit"
        self.requested: list[str] = []
        self.url = ""

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path.partition("?")[0]
        self.requested.append(path)
        resolve = f"/{REPOSITORY}/resolve/{COMMIT}/"
        if path in (f"/api/models/{REPOSITORY}/revision/main", f"/api/models/{REPOSITORY}"):
            siblings = [{"rfilename": name} for name in self.files]
            body = json.dumps({"id": REPOSITORY, "sha": COMMIT, "siblings": siblings, "private": False}).encode()
            self._send(handler, body, {"Content-Type": "application/json"})
        elif path.startswith(f"/api/models/{REPOSITORY}/tree/"):
            entries = [self._tree_entry(name) for name in self.files]
            self._send(handler, json.dumps(entries).encode(), {"Content-Type": "application/json"})
        elif path.startswith(resolve) and path.removeprefix(resolve) in self.files:
            content = self.files[path.removeprefix(resolve)]
            headers = {"ETag": f'"{sha1(content).hexdigest()}"', "X-Repo-Commit": COMMIT}
            self._send(handler, content, headers)
        else:
            handler.send_response(404)
            handler.send_header("X-Error-Code", "RepoNotFound")
            handler.send_header("Content-Length", "0")
            handler.end_headers()

    def _tree_entry(self, name: str) -> dict[str, object]:
        content = self.files[name]
        return {"type": "file", "path": name, "size": len(content), "oid": sha1(content).hexdigest()}

    @staticmethod
    def _send(handler: BaseHTTPRequestHandler, body: bytes, headers: dict[str, str]) -> None:
        handler.send_response(200)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if handler.command == "GET":
            handler.wfile.write(body)


@pytest.fixture
def hub() -> Iterator[Hub]:
    running = Hub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            running.answer(self)

        def do_HEAD(self) -> None:
            running.answer(self)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield running
    server.shutdown()
    server.server_close()
    thread.join()


RESOLVER = """
import sys
from pathlib import Path
from ninfer.errors import NinferError
from ninfer.model_store.model_store import ModelStore
from ninfer.model_store.resolve import resolve_model
from ninfer.weights.open_model import open_model
try:
    path = resolve_model(sys.argv[1], ModelStore(Path(sys.argv[2])))
    open_model(path)
    print(path)
except NinferError as error:
    print(type(error).__name__, error)
"""


def resolved_elsewhere(model: str, endpoint: str, home: Path, **environment: str) -> str:
    """Resolves in a new process, because the hub client reads its endpoint when it is imported."""
    env = {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "HF_HOME": str(home / "hf"),
        "HF_ENDPOINT": endpoint,
        "HOME": str(home),
    }
    env |= {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_XET": "1"}
    command = [sys.executable, "-c", RESOLVER, model, str(home / "models")]
    done = subprocess.run(command, env=env | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_org_name_is_downloaded_once_and_then_read_from_the_cache(hub: Hub, tmp_path: Path) -> None:
    path = resolved_elsewhere(REPOSITORY, hub.url, tmp_path)
    files = (file for file in Path(path).rglob("*") if not file.is_dir())
    found = {str(file.relative_to(path)): file.read_bytes() for file in files}
    wanted = {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"}
    wanted |= {"chat_template.jinja", "additional_chat_templates/tool_use.jinja", "model.safetensors"}
    assert found == {name: hub.files[name] for name in wanted}, "neither pickles nor code nor anything else"
    asked = len(hub.requested)
    assert resolved_elsewhere(REPOSITORY, hub.url, tmp_path) == path
    assert resolved_elsewhere(REPOSITORY, hub.url, tmp_path, HF_HUB_OFFLINE="1") == path
    assert len(hub.requested) == asked, "a complete snapshot needs no network"


def test_an_incomplete_snapshot_is_completed(hub: Hub, tmp_path: Path) -> None:
    path = Path(resolved_elsewhere(REPOSITORY, hub.url, tmp_path))
    (path / "model.safetensors").unlink()
    offline = resolved_elsewhere(REPOSITORY, hub.url, tmp_path, HF_HUB_OFFLINE="1")
    assert offline.startswith("FetchError")
    assert resolved_elsewhere(REPOSITORY, hub.url, tmp_path) == str(path)
    assert (path / "model.safetensors").read_bytes() == hub.files["model.safetensors"]


def test_a_repository_that_does_not_exist_is_not_found(hub: Hub, tmp_path: Path) -> None:
    found = resolved_elsewhere("some-org/other", hub.url, tmp_path)
    assert found.startswith("ModelNotFoundError there is no repository some-org/other")


@pytest.mark.parametrize("environment", [{}, {"HF_HUB_OFFLINE": "1"}], ids=["unreachable", "offline"])
def test_without_a_network_the_error_says_so(tmp_path: Path, environment: dict[str, str]) -> None:
    found = resolved_elsewhere("some-org/demo", "http://127.0.0.1:9", tmp_path, **environment)
    assert found.startswith("FetchError some-org/demo is not complete in the Hugging Face cache")
