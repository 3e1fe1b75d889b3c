"""Rules about what was built: the objects of newer instruction sets, and the stub of the installed module."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy import make_stub
from tests.tidy.rules import isa_symbols

pytestmark = pytest.mark.built


def test_objects_of_newer_instruction_sets_export_no_weak_symbols() -> None:
    build = Path(os.environ["NINFER_BUILD_DIR"])
    if platform.machine() == "x86_64":
        assert isa_symbols.isa_objects(build), f"no object for a newer instruction set under {build}"
    found = isa_symbols.check(build)
    assert not found, "\n" + "\n".join(str(finding) for finding in found)


def test_the_other_generator_still_loses_the_signatures_of_functions(tmp_path: Path) -> None:
    """The reason for nanobind's generator (docs/building.md). When this fails, the choice is worth another look."""
    command = [sys.executable, "-m", "pybind11_stubgen", "ninfer._core", "--ignore-all-errors", "-o", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    other = (tmp_path / "ninfer" / "_core.pyi").read_text(encoding="utf-8")
    names = re.findall(r"^def (\w+)", make_stub.STUB.read_text(encoding="utf-8"), re.MULTILINE)
    assert names, "the module has functions"
    for name in names:
        assert f"\n{name}: nanobind.nb_func" in other


def test_stub_is_fresh() -> None:
    found = make_stub.difference(make_stub.STUB.read_text(encoding="utf-8"), make_stub.generated_stub())
    assert not found, f"run: python tests/tidy/make_stub.py\n{found}"
