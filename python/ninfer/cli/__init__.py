"""The command line: `ninfer`."""

from __future__ import annotations


def main() -> None:
    """Entry point of the `ninfer` command."""
    from ninfer.cli.app import run  # the import of the engine is not wanted by `import ninfer.cli`

    run()
