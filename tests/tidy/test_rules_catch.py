"""Each tidy rule, broken on purpose in a tiny tree, says so; the same tree put right is silent."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tidy import make_stub
from tests.tidy.rules import (
    core_import,
    dangling_references,
    foreign_trees,
    import_limits,
    include_directions,
    include_paths,
    isa_symbols,
    machine_paths,
    module_names,
    size_limits,
    unfinished_markers,
)
from tests.tidy.source_tree import Finding, SourceTree

Rule = Callable[[SourceTree], list[Finding]]
UNFINISHED = "TO" + "DO"
DANGLING = (
    "decisions " + "D-2",
    "physical" + "-core",
    "context" + "-policy",
    "quality" + ".md",
    "serving" + " contract",
)
NUMBERED = "docs/design/a.md"
MACHINE_PATH = "/wo" + "rk/shared"
LONG_BODY = "  f();\n" * 70


def tree_of(root: Path, files: dict[str, str]) -> SourceTree:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return SourceTree.of_folder(root)


BAD: list[tuple[Rule, dict[str, str], str]] = [
    (include_directions.check, {"cpp/state/a.h": '#include "cpp/ops/b.h"\n'}, "cpp/state may not include cpp/ops"),
    (include_directions.check, {"cpp/ops/a.h": '#include "cpp/state/b.h"\n'}, "cpp/ops may not include cpp/state"),
    (include_directions.check, {"cpp/base/a.h": '#include "cpp/tensor/b.h"\n'}, "cpp/base may not include cpp/tensor"),
    (
        include_directions.check,
        {"cpp/model/a.h": '# include "cpp/program/b.h"\n'},
        "cpp/model may not include cpp/program",
    ),
    (
        include_directions.check,
        {"cpp/backend/a.h": '#include "cuda/device/b.cuh"\n'},
        "cpp may not include cuda/device/b.cuh",
    ),
    (include_directions.check, {"cpp/novel/a.h": "\n"}, "cpp/novel has no place"),
    (include_paths.check, {"cpp/base/a.h": '#include "b.h"\n', "cpp/base/b.h": "\n"}, "no file b.h"),
    (
        include_paths.check,
        {"tests/cpp/a.cpp": "#include <cpp/base/a.h>\n", "cpp/base/a.h": "\n"},
        "is included in quotes",
    ),
    (core_import.check, {"python/ninfer/engine/a.py": "from ninfer import _core\n"}, "only native.py"),
    (core_import.check, {"python/ninfer/engine/a.py": "def f():\n    import ninfer._core as c\n"}, "only native.py"),
    (core_import.check, {"python/ninfer/a.py": "from ._core import Model\n"}, "only native.py"),
    (core_import.check, {"tests/python/a.py": "from ninfer._core import Model\n"}, "only native.py"),
    (import_limits.check, {"python/ninfer/agent/a.py": "from ninfer.engine import x\n"}, "agent may not import engine"),
    (import_limits.check, {"python/ninfer/local/a.py": "from ninfer import serving\n"}, "local may not import serving"),
    (
        import_limits.check,
        {"python/ninfer/economics/a.py": "from .. import native\n"},
        "economics may not import native",
    ),
    (
        import_limits.check,
        {"python/ninfer/planner/s/a.py": "from ...native import x\n"},
        "planner may not import native",
    ),
    (module_names.check, {"python/ninfer/utils.py": ""}, "does not say"),
    (module_names.check, {"cpp/ops/common/a.h": ""}, "does not say"),
    (module_names.check, {"python/ninfer/base.py": ""}, "does not say"),
    (module_names.check, {"tests/python/string_helpers.py": ""}, "does not say"),
    (unfinished_markers.check, {"cpp/ops/a.cpp": f"// {UNFINISHED}: later\n"}, "unfinished work"),
    (unfinished_markers.check, {"docs/a.md": f"{UNFINISHED}\n"}, "unfinished work"),
    (machine_paths.check, {"docs/a.md": f"see {MACHINE_PATH}\n"}, "a path of one machine"),
    (machine_paths.check, {".ci/run": f'cd "{MACHINE_PATH}"\n'}, "a path of one machine"),
    *[(dangling_references.check, {"cpp/ops/a.h": f"// see {name}\n"}, "that is not here") for name in DANGLING],
    (
        dangling_references.check,
        {"cpp/ops/a.h": f"// N-12 of {NUMBERED}\n", NUMBERED: "N-1\n"},
        f"{NUMBERED} has no rule N-12",
    ),
    (foreign_trees.check, {"third_party/x/x.h": ""}, "copy of another project"),
    (foreign_trees.check, {".gitmodules": ""}, "copy of another project"),
    (foreign_trees.check, {"python/ninfer/libx.so": ""}, "compiled or packed"),
    (size_limits.check, {"cpp/ops/a.h": "\n" * 401}, "401 is over the limit of 400"),
    (size_limits.check, {"python/ninfer/a.py": "\n" * 301}, "301 is over the limit of 300"),
    (
        size_limits.check,
        {"cpp/model/a.cpp": f"void g(int x) {{\n{LONG_BODY}}}\n"},
        "g::lines: 72 is over the limit of 70",
    ),
    (size_limits.check, {"cpp/ops/cpu/a.cpp": f"void g() {{\n{LONG_BODY * 2}}}\n"}, "142 is over the limit of 120"),
    (size_limits.check, {"python/ninfer/a.py": "def g():\n" + " x()\n" * 70}, "g::lines: 71 is over the limit of 70"),
    (
        size_limits.check,
        {"cpp/ops/a.cpp": "int A::g(int a, int b, int c, int d, int e, P<int, 2> f, int h) { return 1; }\n"},
        "7",
    ),
    (size_limits.check, {"python/ninfer/a.py": "def g(a, b, c, d, *, e, f, h): ...\n"}, "7 is over the limit of 6"),
]


@pytest.mark.parametrize(("rule", "files", "message"), BAD)
def test_bad_tree_is_caught(tmp_path: Path, rule: Rule, files: dict[str, str], message: str) -> None:
    found = rule(tree_of(tmp_path, files))
    assert len(found) == 1
    assert message in str(found[0])


GOOD: list[tuple[Rule, dict[str, str]]] = [
    (
        include_directions.check,
        {"cpp/program/a.cpp": '#include <vector>\n#include "cpp/base/assert.h"\n#include "cpp/program/a.h"\n'},
    ),
    (
        include_directions.check,
        {"cuda/ops/a.cu": '#include "cpp/ops/a.h"\n', "tests/cpp/a.cpp": '#include "cpp/state/a.h"\n'},
    ),
    (include_paths.check, {"cpp/base/a.cpp": '#include "cpp/base/a.h"\n#include <vector>\n', "cpp/base/a.h": "\n"}),
    (
        core_import.check,
        {"python/ninfer/native.py": "from ninfer import _core\n", "tests/a.py": "from other import _core\n"},
    ),
    (import_limits.check, {"python/ninfer/planner/a.py": "from ..economics import cost\nimport numpy\n"}),
    (module_names.check, {"cpp/base/assert.h": "", "python/ninfer/utilisation.py": "", "docs/common.md": ""}),
    (unfinished_markers.check, {"cpp/ops/a.cpp": f"// {UNFINISHED.lower()} lists are {UNFINISHED}LIST\n"}),
    (machine_paths.check, {"docs/a.md": f"$PWD{MACHINE_PATH} and a{MACHINE_PATH}\n"}),
    (
        dangling_references.check,
        {
            "cpp/ops/a.h": f"// N-1 of {NUMBERED}, {DANGLING[3]}\n",
            NUMBERED: "N-1\n",
            f"docs/{DANGLING[3]}": "",
        },
    ),
    (foreign_trees.check, {"cpp/base/a.h": "", "python/ninfer/demo/model.safetensors": ""}),
    (
        size_limits.check,
        {
            "cpp/ops/cpu/a.cpp": f"void g() {{\n{LONG_BODY}}}\n",
            "python/ninfer/cli/a.py": "def g(a, b, c, d, e, f, h): ...\n",
        },
    ),
]


@pytest.mark.parametrize(("rule", "files"), GOOD)
def test_good_tree_is_silent(tmp_path: Path, rule: Rule, files: dict[str, str]) -> None:
    assert rule(tree_of(tmp_path, files)) == []


@pytest.mark.parametrize(
    ("ratchet", "message"),
    [
        ({"cpp/ops/a.h": 450}, None),
        ({"cpp/ops/a.h": 449}, "450 is over its ratchet of 449"),
        ({"cpp/ops/a.h": 451}, "lower it to 450"),
        ({"cpp/ops/a.h": 450, "cpp/ops/gone.h": 500}, "cpp/ops/gone.h: no such file or function"),
    ],
)
def test_ratchet_holds_exactly_what_is_needed(tmp_path: Path, ratchet: dict[str, int], message: str | None) -> None:
    tree = tree_of(tmp_path, {"cpp/ops/a.h": "\n" * 450, size_limits.RATCHET: json.dumps(ratchet)})
    found = [str(finding) for finding in size_limits.check(tree)]
    assert len(found) == (message is not None)
    assert message is None or message in found[0]


def test_ratchet_may_not_grow() -> None:
    assert size_limits.loosened({"a": 450, "b": 500}, {"a": 440}) == []
    assert size_limits.loosened({"a": 450}, {"a": 451, "c": 1}) == ["a", "c"]


def test_weak_symbol_of_a_newer_instruction_set_is_caught(tmp_path: Path) -> None:
    shared = "inline int leak(int x) { return x + 1; }\nint (*entry)(int) = leak;\n"
    own = (
        "namespace ninfer::avx2 { inline int keep(int x) { return x + 1; } }\nint (*entry)(int) = ninfer::avx2::keep;\n"
    )
    local = "static int keep(int x) { return x + 1; }\nint (*entry)(int) = keep;\n"
    cases = [
        ("ops_avx2", "leaky", shared),
        ("ops_avx2", "own", own),
        ("ops_avx2", "local", local),
        ("ops", "base", shared),
    ]
    for library, name, text in cases:
        folder = tmp_path / f"{library}.dir"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.cpp").write_text(text)
        subprocess.run(["c++", "-std=c++20", "-c", f"{name}.cpp", "-o", f"{name}.cpp.o"], cwd=folder, check=True)
    found = [str(finding) for finding in isa_symbols.check(tmp_path)]
    assert found == ["ops_avx2.dir/leaky.cpp.o: exports the weak symbol leak(int)"]


def test_stale_stub_is_shown() -> None:
    assert make_stub.difference("def f() -> int: ...\n", "def f() -> int: ...\n") == ""
    assert "+def g() -> int: ..." in make_stub.difference("", "def g() -> int: ...\n")
