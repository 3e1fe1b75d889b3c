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
        (OptionError("kv_dtype", "q3", "use bf16"), "--kv-dtype q3 cannot be used: use bf16"),
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
    assert error_line(error, VARIABLES) == f"ninfer: {line}"
