"""The Debian packages that the checks need besides a C++20 compiler, and how they come onto a machine."""

from __future__ import annotations

import os
import shutil
import subprocess

PACKAGES = ("libgtest-dev", "qemu-user")
COMMAND = "apt-get update && apt-get install -y --no-install-recommends"


def ready(install: bool) -> bool:
    """Whether every package is there, after installing the missing ones if that is wanted and allowed.

    Where it is not allowed, prints the one line that an administrator has to run.
    """
    absent = missing()
    if not absent:
        return True
    prefix = _privilege() if install else None
    if prefix is None:
        hint = "" if install else " (or add --setup, which installs them where it may)"
        print(f"These Debian packages are missing. Run this line, then try again{hint}:\n  {line(absent)}")
        return False
    print(f"installing {' '.join(absent)}", flush=True)
    _install(prefix, absent)
    return not missing()


def missing() -> list[str]:
    """Names of PACKAGES that dpkg does not know as installed."""
    if shutil.which("dpkg-query") is None:
        return list(PACKAGES)
    query = ["dpkg-query", "--show", "--showformat=${db:Status-Status} ${Package}\n", *PACKAGES]
    shown = subprocess.run(query, capture_output=True, text=True, check=False).stdout
    installed = {text.split()[1] for text in shown.splitlines() if text.startswith("installed ")}
    return [name for name in PACKAGES if name not in installed]


def line(packages: list[str]) -> str:
    return f"sudo sh -c '{COMMAND} {' '.join(packages)}'"


def _privilege() -> list[str] | None:
    """What to put before a command to run it as root; None if there is no way without a password."""
    if shutil.which("apt-get") is None:
        return None
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") is None:
        return None
    asked = subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False)
    return ["sudo", "-n"] if asked.returncode == 0 else None


def _install(prefix: list[str], packages: list[str]) -> None:
    command = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "sh", "-c", f"{COMMAND} {' '.join(packages)}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(
            f"{done.stdout}{done.stderr}\nThe installation failed. Run this line, then try again:\n  {line(packages)}"
        )
