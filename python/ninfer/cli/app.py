"""The `ninfer` command."""

from __future__ import annotations

import typer

from ninfer.cli.calibrate import calibrate
from ninfer.cli.chat import chat
from ninfer.cli.doctor import doctor
from ninfer.cli.models import models_app
from ninfer.cli.run import run_prompt
from ninfer.cli.version_flag import VersionFlag

app = typer.Typer(
    name="ninfer", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
)
app.command("chat")(chat)
app.command("run")(run_prompt)
app.command("calibrate")(calibrate)
app.command("doctor")(doctor)
app.add_typer(models_app, name="models")


@app.callback()
def _options(_version: VersionFlag = False) -> None:
    """LLM server for one machine whose prompt cache works for hybrid models."""
