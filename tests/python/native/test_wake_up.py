"""What tests/cpp/wake_up_test.cpp says of a wake-up is so in Python too, and its errors are OSError."""

from __future__ import annotations

import errno
import os
import select

import pytest

from ninfer import native


def readable(wake_up: native.WakeUp) -> bool:
    waiting = select.poll()
    waiting.register(wake_up.file_descriptor, select.POLLIN)
    return waiting.poll(0) != []


def test_it_is_readable_from_a_signal_to_its_acknowledgement() -> None:
    wake_up = native.WakeUp()
    assert not readable(wake_up) and not wake_up.acknowledge()
    wake_up.signal()
    wake_up.signal()
    assert readable(wake_up) and wake_up.acknowledge()
    assert not readable(wake_up) and not wake_up.acknowledge()


def test_a_call_to_the_system_that_fails_is_an_os_error() -> None:
    wake_up = native.WakeUp()
    reading, writing = os.pipe()
    # Under the same number there is something else now, which cannot be written.
    os.dup2(reading, wake_up.file_descriptor)
    os.close(reading)
    with pytest.raises(OSError, match="write to an eventfd") as caught:
        wake_up.signal()
    assert caught.value.errno == errno.EBADF
    os.close(writing)
