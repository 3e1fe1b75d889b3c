"""The options of commands that may ask a server instead of loading a model."""

from __future__ import annotations

from typing import Annotated

import typer

from ninfer.cli.flag_groups import environment_variable
from ninfer.cli.remote_server import RemoteServer
from ninfer.errors import OptionError

UrlOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Ask this server, in the protocol of OpenAI, instead of loading a model; MODEL is then one of its names.",
        show_default=False,
    ),
]
ApiKeyOption = Annotated[
    str | None,
    typer.Option(envvar=environment_variable("api_key"), help="The key that the server wants.", show_default=False),
]
REMOTE_FLAG_NAMES = ("url", "api_key")


def remote_server(url: str, api_key: str | None, model: str | None, demo: str | None) -> RemoteServer:
    """Raises OptionError for what cannot be combined."""
    if demo is not None:
        raise OptionError("url", url, "either --url or --demo works, not both")
    return RemoteServer(url, api_key, model)
