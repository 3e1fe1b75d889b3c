"""The stages in their order, and the commands of each."""

from __future__ import annotations

import functools
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.runner.settings import Settings
from tests.runner.stage import Command, Stage
from tests.tidy.source_tree import SourceTree

# What a bench answers where the machine was too busy to say anything (EX_TEMPFAIL of sysexits.h).
EXIT_INVALID = 75
# A sanitizer that finds something ends the test, with the stack of what it found. The check for use after return is
# off: it moves locals to a stack of its own, where GCC 12 misaligns those of 64 bytes, and AVX-512 code
# faults on them.
_SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=0:strict_string_checks=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}
# An old CPU and a middle one. x86-64-v2 is the least that the wheels of NumPy run on, so Nehalem is as old as it gets.
_EMULATED_CPUS = {"Nehalem": "scalar", "Haswell": "avx2"}
# These choose a kernel of OpenBLAS for the real CPU; under emulation that kernel would be an illegal instruction.
_FOR_THE_REAL_CPU = {"OPENBLAS_CORETYPE": None, "OPENBLAS_L2_SIZE": None}


def with_needs(names: Iterable[str]) -> list[Stage]:
    """The named stages and everything they need, in the order of STAGES."""
    by_name = {stage.name: stage for stage in STAGES}
    wanted: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in wanted:
            wanted.add(name)
            waiting.extend(by_name[name].needs)
    return [stage for stage in STAGES if stage.name in wanted]


def of_tier(tier: str) -> list[Stage]:
    """The stages of a tier, in the order of STAGES."""
    return [stage for stage in STAGES if tier in stage.tiers]


def _script(name: str) -> str:
    return str(Path(sysconfig.get_path("scripts")) / name)


def _module(*arguments: str, **environment: str) -> Command:
    return Command([sys.executable, "-m", *arguments], environment)


def _format(settings: Settings) -> Sequence[Command]:
    cpp = SourceTree.of_repository(settings.root).cpp_files()
    checks = [Command([_script("clang-format"), "--dry-run", "-Werror", *cpp])] if cpp else []
    return [*checks, _module("ruff", "format", "--check", ".")]


def _lint(settings: Settings) -> Sequence[Command]:
    imports = Command([_script("lint-imports"), "--no-cache"], {"PYTHONPATH": str(settings.root / "python")})
    return [_module("ruff", "check", "."), imports]


def _types(settings: Settings) -> Sequence[Command]:
    return [_module("mypy")]


def _tidy(settings: Settings) -> Sequence[Command]:
    return [_module("pytest", "tests/tidy", "tests/runner", "-q", "-m", "not built")]


def _package(settings: Settings) -> Sequence[Command]:
    # A symbol that no source defines only shows when the module is loaded.
    return [_module("tests.runner.installed_package"), Command([sys.executable, "-c", "import ninfer"])]


def _build(settings: Settings) -> Sequence[Command]:
    return _cmake(settings, "release")


def _cmake(settings: Settings, variant: str, sanitizer: str = "", targets: Sequence[str] = ()) -> list[Command]:
    folder = str(settings.build(variant))
    # Instrumented kernels take four times longer to compile at -O3, and say the same.
    light = ["-DCMAKE_CXX_FLAGS_RELEASE=-O1 -g1"] if sanitizer else []
    configure = [
        _script("cmake"),
        "-S.",
        f"-B{folder}",
        "-GNinja",
        f"-DCMAKE_MAKE_PROGRAM={_script('ninja')}",
        "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
        f"-DPython_EXECUTABLE={sys.executable}",
        "-DNINFER_TESTS=ON",
        "-DNINFER_WERROR=ON",
        f"-DNINFER_BENCHES={'OFF' if sanitizer else 'ON'}",
        f"-DNINFER_PYTHON={'OFF' if sanitizer else 'ON'}",
        f"-DNINFER_SANITIZE={sanitizer}",
        *light,
    ]
    chosen = ["--target", *targets] if targets else []
    build = [_script("cmake"), "--build", folder, "--parallel", str(settings.jobs), *chosen]
    return [Command(configure), Command([*_fixed_addresses(sanitizer), *build], _SANITIZER_OPTIONS)]


def _ctest(settings: Settings, variant: str, sanitizer: str = "", label: str = "") -> Command:
    folder = str(settings.build(variant))
    run = [_script("ctest"), "--test-dir", folder, "--output-on-failure", "--no-tests=error", "--timeout", "600"]
    chosen = ["--label-regex", label] if label else ["--parallel", str(settings.jobs)]
    return Command([*_fixed_addresses(sanitizer), *run, *chosen], _SANITIZER_OPTIONS)


@functools.cache
def _fixed_addresses(sanitizer: str) -> tuple[str, ...]:
    """GCC 12's thread sanitizer cannot place its shadow memory on kernels that randomise 32 bits of an address."""
    if sanitizer != "thread":
        return ()
    prefix = ("setarch", "--addr-no-randomize")
    try:
        allowed = subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        allowed = False
    return prefix if allowed else ()


def _run_ctest(settings: Settings) -> Sequence[Command]:
    return [_ctest(settings, "release")]


def _asan(settings: Settings) -> Sequence[Command]:
    return [*_cmake(settings, "asan", "address", ["all_tests"]), _ctest(settings, "asan", "address")]


def _tsan(settings: Settings) -> Sequence[Command]:
    build = _cmake(settings, "tsan", "thread", ["thread_tests"])
    return [*build, _ctest(settings, "tsan", "thread", "^threads$")]


def _clang_tidy(settings: Settings) -> Sequence[Command]:
    return [_module("tests.runner.clang_tidy", str(settings.build("release")), str(settings.jobs))]


def _tidy_built(settings: Settings) -> Sequence[Command]:
    build = str(settings.build("release"))
    return [_module("pytest", "tests/tidy", "-q", "-m", "built", NINFER_BUILD_DIR=build)]


def _pytest(settings: Settings) -> Sequence[Command]:
    chosen = "not slow and not gpu and not peer and not built" if settings.tier == "ci" else "not built"
    others = ["--ignore=tests/tidy", "--ignore=tests/runner"]
    # torch's idle threads spin by default, which slows everything else down as soon as cores are scarce.
    return [_module("pytest", "-q", "--durations=15", "-m", chosen, *others, OMP_WAIT_POLICY="PASSIVE")]


def _qemu(settings: Settings) -> Sequence[Command]:
    script = str(settings.root / "tests" / "e2e" / "qemu_generate.py")
    return [
        Command(["qemu-x86_64", "-cpu", cpu, sys.executable, script, "--isa", isa], _FOR_THE_REAL_CPU)
        for cpu, isa in _EMULATED_CPUS.items()
    ]


def _sim(settings: Settings) -> Sequence[Command]:
    simulator = str(settings.build("release") / "tests" / "sim" / "ninfer_sim")
    return [Command([simulator, "--scope", scope, "--steps", "10000000"]) for scope in ("stores", "all")]


def _mutations(settings: Settings) -> Sequence[Command]:
    folder = settings.build("mutations")
    return [_module("tests.sim.mutations", "--work", str(folder), "--report", str(settings.logs / "mutations.md"))]


def _overhead(settings: Settings) -> Sequence[Command]:
    script = str(settings.root / "bench" / "engine" / "round_overhead.py")
    return [Command([sys.executable, script, "--rounds", "200"], undecided_code=EXIT_INVALID)]


def _admission(settings: Settings) -> Sequence[Command]:
    script = str(settings.root / "bench" / "serving" / "admission.py")
    return [Command([sys.executable, script, "--requests", "400"], undecided_code=EXIT_INVALID)]


def _captures(settings: Settings) -> Sequence[Command]:
    script = str(settings.root / "bench" / "engine" / "capture_cost.py")
    return [Command([sys.executable, script, "--turns", "25"], undecided_code=EXIT_INVALID)]


def _peers(settings: Settings) -> Sequence[Command]:
    script = str(settings.root / "bench" / "peers" / "llama_cpp.py")
    return [Command([sys.executable, script, "--quick"], undecided_code=EXIT_INVALID)]


STAGES = (
    Stage("format", "clang-format and ruff format agree with every file", _format),
    Stage("lint", "ruff check, and Python imports point down", _lint),
    Stage("types", "mypy --strict on the package", _types),
    Stage("tidy", "the rules that read the source, and their own tests", _tidy),
    Stage("package", "the installed package is built from this tree and loads", _package),
    Stage("build", "a release build with tests and benches, warnings as errors", _build),
    Stage("ctest", "the C++ tests", _run_ctest, needs=("build",)),
    Stage("asan", "the C++ tests under the address and undefined-behaviour sanitizers", _asan),
    Stage("tsan", "the C++ tests that use threads, under the thread sanitizer", _tsan),
    Stage("clang-tidy", "clang-tidy on the C++ of the product", _clang_tidy, needs=("build",)),
    Stage("tidy-built", "the rules that read what was built", _tidy_built, needs=("package", "build")),
    Stage("pytest", "the Python tests on the installed package", _pytest, needs=("package",), limit_s=14400),
    Stage("qemu", "the installed package generates tokens on an old and a middle CPU", _qemu, needs=("package",)),
    Stage(
        "sim",
        "10 million steps of the simulator find no violation and try everything",
        _sim,
        needs=("build",),
        limit_s=3600,
        tiers=("long",),
    ),
    Stage(
        "mutations",
        "faults made by hand and generated ones, in a copy of the sources, are seen by some test",
        _mutations,
        limit_s=14400,
        tiers=("long",),
    ),
    Stage(
        "overhead",
        "the engine's own time per decode round, with and without HTTP streams, within its limits",
        _overhead,
        needs=("package",),
        tiers=("long",),
    ),
    Stage(
        "admission",
        "a prompt of 240,000 tokens is admitted among 1,000 conversations within its limit",
        _admission,
        needs=("package",),
        tiers=("long",),
    ),
    Stage(
        "captures",
        "the checkpoints of a prompt of 2,000 tokens cost its prefill next to nothing",
        _captures,
        needs=("package",),
        tiers=("long",),
    ),
    Stage(
        "peers",
        "the installed package beside llama.cpp on the same weights, above the bench's floors",
        _peers,
        needs=("package",),
        limit_s=7200,
        tiers=("long",),
    ),
)
