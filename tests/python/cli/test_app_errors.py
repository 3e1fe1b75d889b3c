"""The one line that an error becomes, in the words of the command line."""

from __future__ import annotations

import errno

import pytest

from ninfer.cli.app_errors import error_line
from ninfer.errors import CapacityError, FetchError, NinferError, OptionError, RequestError

VARIABLES = {"NINFER_KV_DTYPE": "q2"}


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OptionError("cpu_isa", "mmx", "use avx2"), "--cpu-isa mmx cannot be used: use avx2"),
        (OptionError("kv_dtype", "q2", "use bf16"), "NINFER_KV_DTYPE q2 cannot be used: use bf16"),
        (OptionError("max_context", 9, "kv_capacity holds 8"), "--max-context 9 cannot be used: --kv-capacity holds 8"),
        (OptionError("max_queued", 0, "1 works"), "--max-queued 0 cannot be used: 1 works"),
        (RequestError("max_tokens", "expected at least 1"), "--max-tokens: expected at least 1"),
        (RequestError("messages", "max_tokens stays"), "messages: max_tokens stays"),
        (CapacityError("kv_capacity needs 9 bytes, 8 are free"), "--kv-capacity needs 9 bytes, 8 are free"),
        (FetchError("first\nsecond \x1b[2J"), "first second [2J"),
        (FileNotFoundError(errno.ENOENT, "No such file", "/a/b"), "/a/b: No such file"),
        (OSError(errno.EXDEV, "Other device", "/a", None, "/b"), "/a: /b: Other device"),
        (OSError("odd"), "odd"),
    ],
)
def test_an_error_is_one_line(error: NinferError | OSError, line: str) -> None:
    assert error_line(error, VARIABLES, ["run", "hello"]) == line


@pytest.mark.parametrize("arguments", [["--kv-dtype", "q2"], ["--kv-dtype=q2"]])
def test_a_variable_that_the_command_line_outranks_is_not_named(arguments: list[str]) -> None:
    line = error_line(OptionError("kv_dtype", "q2", "use bf16"), VARIABLES, arguments)
    assert line == "--kv-dtype q2 cannot be used: use bf16"
