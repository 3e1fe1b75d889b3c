"""The `ninfer-serve` command."""

from __future__ import annotations

import typer

from ninfer.cli.serve import serve

serve_app = typer.Typer(
    name="ninfer-serve", add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
)
serve_app.command()(serve)
