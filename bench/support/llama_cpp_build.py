"""Building one tool of llama.cpp the way its fastest users would: Release, for this CPU."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.support.llama_cpp_source import llama_cpp_source

CMAKE_OPTIONS = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DGGML_NATIVE=ON",
    "-DBUILD_SHARED_LIBS=OFF",
    "-DLLAMA_CURL=OFF",
    "-DLLAMA_OPENSSL=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
)


def llama_cpp_tool(name: str, jobs: int | None = None) -> Path:
    """The executable `name` (such as "llama-bench"), built beside the source on first use (minutes)."""
    source = llama_cpp_source()
    build = source.parent / "build"
    tool = build / "bin" / name
    if not tool.is_file():
        cmake, ninja = _find("cmake"), _find("ninja")
        print(f"building {name} in {build}", file=sys.stderr, flush=True)
        generator = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
        configure = [cmake, "-S", str(source), "-B", str(build), *generator, *CMAKE_OPTIONS]
        subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
        compile_ = [cmake, "--build", str(build), "--target", name, "-j", str(jobs or os.cpu_count() or 1)]
        subprocess.run(compile_, check=True, stdout=subprocess.DEVNULL)
    return tool


def _find(tool: str) -> str:
    # Inside a virtual environment that is not activated, its tools lie beside the interpreter and not on PATH.
    found = shutil.which(tool, path=str(Path(sys.executable).parent)) or shutil.which(tool)
    if found is None:
        raise SystemExit(f"{tool} is missing; run: {sys.executable} -m pip install cmake ninja")
    return found
