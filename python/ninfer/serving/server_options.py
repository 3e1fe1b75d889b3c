"""Everything that can be said about one server, in one object."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from ninfer.config.engine_options import EngineOptions
from ninfer.errors import OptionError
from ninfer.serving.serving_options import ServingOptions

LogLevel = Literal["debug", "info", "warning", "error"]
_MOST_PORT = 65_535


@dataclass(frozen=True)
class ServerOptions:
    """host, port: where it listens; port 0 is a free one. log_level: of the console. request_log: a file that gets one
    JSON line per request."""

    engine: EngineOptions
    serving: ServingOptions
    host: str = "127.0.0.1"
    port: int = 8080
    log_level: LogLevel = "info"
    request_log: Path | None = None

    def __post_init__(self) -> None:
        if not self.host:
            raise OptionError("host", self.host, "an address of this machine works, such as 127.0.0.1")
        if not 0 <= self.port <= _MOST_PORT:
            raise OptionError("port", self.port, f"a whole number from 0 to {_MOST_PORT} works")
        if self.log_level not in get_args(LogLevel):
            raise OptionError("log_level", self.log_level, f"one of {', '.join(get_args(LogLevel))} works")
