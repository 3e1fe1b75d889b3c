"""The options of the HTTP side: as on the command line, dashes as underscores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from ninfer.errors import OptionError

_DAY_S = 86_400
_RANGES = (
    ("headers_timeout_s", 0.1, _DAY_S),
    ("max_header_kib", 1, 1024),
    ("max_body_mib", 1, 1024),
    ("body_timeout_s", 0.1, _DAY_S),
    ("send_timeout_s", 0.1, _DAY_S),
    ("request_timeout_s", 0.1, _DAY_S),
    ("keep_alive_s", 0, _DAY_S),
    ("max_connections", 1, 1 << 20),
    ("max_queued", 1, 1 << 20),
)
# Options in seconds, and what they are called outside.
_SECONDS: Mapping[str, str] = {
    "headers_timeout_s": "headers_timeout",
    "body_timeout_s": "body_timeout",
    "send_timeout_s": "send_timeout",
    "request_timeout_s": "request_timeout",
    "keep_alive_s": "keep_alive",
}
# None means no limit.
_OPTIONAL = frozenset({"request_timeout_s"})


@dataclass(frozen=True)
class ServingOptions:
    """served_model_names: what requests may call the model, the first one in answers. api_keys: empty for no check.

    cors_origins: web pages that may call, `*` for all. headers_timeout_s: longest wait for the headers of a request.
    max_header_kib: largest headers. max_body_mib: largest request body. body_timeout_s: longest wait for the next piece
    of a body. send_timeout_s: how long a client may read nothing of what waits for it. request_timeout_s: longest time
    of a generation, queue included; None for no limit. keep_alive_s: how long an idle connection stays after an answer.
    max_connections: more are answered 503. shutdown_timeout_s: how long running answers may take to end. max_queued:
    requests that may wait behind the running ones. comment_interval_s: how often a silent stream says that it lives.
    parse_special_in_content: special tokens in messages become control tokens.
    """

    served_model_names: tuple[str, ...]
    api_keys: frozenset[str] = frozenset()
    cors_origins: tuple[str, ...] = ()
    headers_timeout_s: float = 10.0
    max_header_kib: int = 64
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
        for key in self.api_keys:
            # The key itself is never shown.
            if not key or not key.isprintable() or key != key.strip():
                raise OptionError("api_key", "(not shown)", "printable characters without blanks around them work")
        for origin in self.cors_origins:
            if not _is_origin(origin):
                raise OptionError("cors_origin", origin, "* or an origin such as https://example.org:8443 works")
        for option, least, most in _RANGES:
            value = getattr(self, option)
            if value is None and option in _OPTIONAL:
                continue
            if not least <= value <= most:
                kind = "a number of seconds" if option in _SECONDS else "a whole number"
                name = _SECONDS.get(option, option)
                raise OptionError(name, value, f"{kind} from {least:g} to {most} works")

    @property
    def max_header_bytes(self) -> int:
        return self.max_header_kib << 10

    @property
    def max_body_bytes(self) -> int:
        return self.max_body_mib << 20


def _is_origin(text: str) -> bool:
    if text in ("*", "null"):
        return True
    try:
        parts = urlsplit(text)
        return text == f"{parts.scheme}://{parts.netloc}" and bool(parts.scheme and parts.hostname) and parts.port != 0
    except ValueError:
        return False
