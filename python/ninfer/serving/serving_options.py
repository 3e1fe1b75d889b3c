"""The options of the HTTP side: as on the command line, dashes as underscores."""

from __future__ import annotations

from dataclasses import dataclass

from ninfer.errors import OptionError


@dataclass(frozen=True)
class ServingOptions:
    """served_model_names: what requests may call the model, the first one in answers. api_keys: empty for no check.

    headers_timeout_s: longest wait for the headers of a request. max_body_mib: largest request body. body_timeout_s:
    longest wait for the next piece of a body. send_timeout_s: how long a client may read nothing of what waits for it.
    request_timeout_s: longest time of a generation, queue included; None for no limit. keep_alive_s: how long an idle
    connection stays after an answer. max_connections: more are answered 503. shutdown_timeout_s: how long running
    answers may take to end. max_queued: requests that may wait behind the running ones. comment_interval_s: how often
    a silent stream says that it lives. parse_special_in_content: special tokens in messages become control tokens.
    """

    served_model_names: tuple[str, ...]
    api_keys: frozenset[str] = frozenset()
    cors_origins: tuple[str, ...] = ()
    headers_timeout_s: float = 10.0
    max_body_mib: int = 8
    body_timeout_s: float = 60.0
    send_timeout_s: float = 60.0
    request_timeout_s: float | None = None
    keep_alive_s: int = 60
    max_connections: int = 1024
    shutdown_timeout_s: int = 5
    max_queued: int = 64
    comment_interval_s: float = 10.0
    parse_special_in_content: bool = False

    def __post_init__(self) -> None:
        if not self.served_model_names or not all(self.served_model_names):
            raise OptionError("served_model_name", self.served_model_names, "at least one name that is not empty works")
        if not all(self.api_keys):
            raise OptionError("api_key", "", "a key that is not empty works")
        if not 1 <= self.max_body_mib <= 1024:
            raise OptionError("max_body_mib", self.max_body_mib, "a whole number from 1 to 1024 works")
        if self.send_timeout_s <= 0:
            raise OptionError("send_timeout", self.send_timeout_s, "a number of seconds above 0 works")
        if self.request_timeout_s is not None and self.request_timeout_s <= 0:
            raise OptionError("request_timeout", self.request_timeout_s, "a number of seconds above 0 works")
        if self.max_connections < 1:
            raise OptionError("max_connections", self.max_connections, "a whole number from 1 works")
        if self.max_queued < 1:
            raise OptionError("max_queued", self.max_queued, "a whole number from 1 works")

    @property
    def max_body_bytes(self) -> int:
        return self.max_body_mib << 20
