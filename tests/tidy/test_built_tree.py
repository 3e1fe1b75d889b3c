"""Rules about what was built: the objects of newer instruction sets, and the stub of the installed module."""

from __future__ import annotations

import os
import platform
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


def test_stub_is_fresh() -> None:
    found = make_stub.difference(make_stub.STUB.read_text(encoding="utf-8"), make_stub.generated_stub())
    assert not found, f"run: python tests/tidy/make_stub.py\n{found}"
