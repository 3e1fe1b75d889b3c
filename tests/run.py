#!/usr/bin/env python3
"""Runs every check of the repository: `python tests/run.py --setup [--tier ci|long]`. See docs/testing.md."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    # The folder of this script gives way to the root, so that the runner is found as a part of the `tests` package.
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    runpy.run_module("tests.runner", run_name="__main__", alter_sys=False)
