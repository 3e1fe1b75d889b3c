"""What the runner does about missing Debian packages and about an old installed package."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.runner import debian_packages
from tests.runner.installed_package import reason_to_install


def test_without_setup_the_line_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(debian_packages, "missing", lambda: ["libgtest-dev"])
    assert not debian_packages.ready(install=False)
    assert (
        "sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends libgtest-dev'"
        in capsys.readouterr().out
    )


def test_setup_without_the_right_to_install_prints_the_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(debian_packages, "missing", lambda: ["qemu-user"])
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("shutil.which", lambda name: None if name == "sudo" else f"/usr/bin/{name}")
    assert not debian_packages.ready(install=True)
    assert "qemu-user'" in capsys.readouterr().out


def test_setup_installs_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = ["qemu-user"]
    asked: list[tuple[list[str], list[str]]] = []

    def install(prefix: list[str], packages: list[str]) -> None:
        asked.append((prefix, list(packages)))
        absent.clear()

    monkeypatch.setattr(debian_packages, "missing", lambda: list(absent))
    monkeypatch.setattr(debian_packages, "_install", install)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert debian_packages.ready(install=True)
    assert asked == [([], ["qemu-user"])]


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    """A source tree and the installed package that was built from it, a minute after the sources were written."""
    root, installed = tmp_path / "root", tmp_path / "site" / "ninfer"
    for path, text in (
        (root / "python/ninfer/a.py", "x = 1\n"),
        (root / "cpp/base/b.cpp", ""),
        (installed / "a.py", "x = 1\n"),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    os.utime(root / "cpp/base/b.cpp", (1000, 1000))
    (installed / "_core.cpython-311.so").touch()
    os.utime(installed / "_core.cpython-311.so", (1060, 1060))
    return root, installed


def test_fresh_package_stays(trees: tuple[Path, Path]) -> None:
    assert reason_to_install(*trees) == ""


def test_old_package_is_installed_again(trees: tuple[Path, Path]) -> None:
    root, installed = trees
    assert reason_to_install(root, None) == "it is not installed"
    os.utime(root / "cpp/base/b.cpp", (1100, 1100))
    assert reason_to_install(root, installed) == "cpp/base/b.cpp is newer than the extension module"
    (root / "python/ninfer/a.py").write_text("x = 2\n", encoding="utf-8")
    assert reason_to_install(root, installed) == "python/ninfer/a.py differs"
