"""What a number was measured on: the processor, the load beside us, and the memory rate measured in the same run."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path


def describe_machine() -> str:
    """One line: processor, cores, memory, load average, kernel."""
    gibibytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = ", ".join(f"{one:.2f}" for one in os.getloadavg())
    system = f"{platform.system()} {platform.release()}"
    return f"{_processor()}, {os.cpu_count()} CPUs, {gibibytes:.1f} GiB, {system}, load {load}"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def memory_read_gbps(threads: int) -> float:
    """Gigabytes (1e9) per second that `threads` threads read together, best of 8 rounds over 256 MiB each."""
    compiler = next((found for found in map(shutil.which, ("c++", "g++", "clang++")) if found), None)
    if compiler is None:
        raise SystemExit("a C++ compiler is needed to measure the memory rate; on Debian: apt-get install g++")
    source = Path(__file__).with_name("memory_read.cpp")
    with tempfile.TemporaryDirectory() as scratch:
        program = str(Path(scratch) / "memory_read")
        options = ["-std=c++20", "-O3", "-march=native", "-pthread"]
        subprocess.run([compiler, *options, str(source), "-o", program], check=True)
        result = subprocess.run([program, str(threads)], check=True, capture_output=True, text=True)
    return float(result.stdout)
