"""The options of `ninfer-serve` beside those of the loaded model."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

from ninfer.cli.cache_flags import CacheFlags
from ninfer.cli.engine_flags import EngineFlags
from ninfer.cli.flag_groups import count, flag, seconds, switch
from ninfer.config.engine_options import EngineOptions
from ninfer.errors import OptionError
from ninfer.serving.server_options import ServerOptions
from ninfer.serving.serving_options import ServingOptions

# Answers that have not ended by then are cut off, so that the process is gone after five seconds.
_SHUTDOWN_TIMEOUT_S = 4


@dataclass(frozen=True)
class ServerFlags:
    """Fields of ServerOptions, of ServingOptions, and those of EngineOptions that only a server has."""

    host: Annotated[str, flag("host", "Address or name of this machine to listen on.", metavar="HOST")] = "127.0.0.1"
    port: Annotated[int, count("port", "Port to listen on; 0 picks a free one.")] = 8080
    served_model_name: Annotated[
        list[str] | None,
        flag("served-model-name", "What requests may call the model; repeat it for more names.", metavar="NAME"),
    ] = None
    api_key: Annotated[
        list[str] | None, flag("api-key", "A key that requests must send; repeat it for more keys.", metavar="KEY")
    ] = None
    api_key_file: Annotated[Path | None, flag("api-key-file", "A file with one key per line.", metavar="FILE")] = None
    cors_origin: Annotated[
        list[str] | None,
        flag("cors-origin", "Origin of web pages that may call, * for all; repeat it for more.", metavar="ORIGIN"),
    ] = None
    log_level: Annotated[
        str, flag("log-level", "What the console shows: debug, info, warning, error.", metavar="LEVEL")
    ] = "info"
    request_log: Annotated[
        Path | None, flag("request-log", "A file that gets one JSON line per request.", metavar="FILE")
    ] = None
    max_concurrency: Annotated[int, count("max-concurrency", "Requests that are computed at once, 1 to 8.")] = 4
    max_queued: Annotated[int, count("max-queued", "Requests that may wait beside them.")] = 64
    default_max_tokens: Annotated[
        int, count("default-max-tokens", "Longest answer to a request that names no limit, in tokens.")
    ] = 4096
    max_body_mib: Annotated[int, count("max-body-mib", "Largest request body, in MiB.")] = 8
    max_header_kib: Annotated[int, count("max-header-kib", "Largest request headers, in KiB.")] = 64
    headers_timeout: Annotated[float, seconds("headers-timeout", "Seconds in which headers must come.")] = 10.0
    body_timeout: Annotated[float, seconds("body-timeout", "Longest pause within a request body, in seconds.")] = 60.0
    send_timeout: Annotated[
        float, seconds("send-timeout", "Seconds that a client may read nothing of what waits for it.")
    ] = 60.0
    request_timeout: Annotated[
        float | None, seconds("request-timeout", "Longest time of one answer, queue included; by default no limit.")
    ] = None
    keep_alive: Annotated[int, count("keep-alive", "Seconds that an idle connection stays after an answer.")] = 60
    max_connections: Annotated[int, count("max-connections", "Connections at once; more are answered 503.")] = 1024
    parse_special_in_content: Annotated[
        bool,
        switch("parse-special-in-content", "Whether special tokens written in messages become control tokens."),
    ] = False


SERVER_FLAG_NAMES = tuple(field.name for field in fields(ServerFlags))


def server_options(engine: EngineFlags, cache: CacheFlags, server: ServerFlags, default_name: str) -> ServerOptions:
    """The one configuration object. default_name: of the model, unless the user named it.

    Raises OptionError for an impossible value or combination, OSError for a key file that cannot be read.
    """
    return ServerOptions(
        engine=EngineOptions.from_mapping(
            {
                **engine.as_options(),
                **cache.as_options(),
                "max_concurrency": server.max_concurrency,
                "default_max_tokens": server.default_max_tokens,
            }
        ),
        serving=ServingOptions(
            served_model_names=tuple(server.served_model_name or (default_name,)),
            api_keys=frozenset([*(server.api_key or ()), *_file_keys(server.api_key_file)]),
            cors_origins=tuple(server.cors_origin or ()),
            headers_timeout_s=server.headers_timeout,
            max_header_kib=server.max_header_kib,
            max_body_mib=server.max_body_mib,
            body_timeout_s=server.body_timeout,
            send_timeout_s=server.send_timeout,
            request_timeout_s=server.request_timeout,
            keep_alive_s=server.keep_alive,
            max_connections=server.max_connections,
            max_queued=server.max_queued,
            shutdown_timeout_s=_SHUTDOWN_TIMEOUT_S,
            parse_special_in_content=server.parse_special_in_content,
        ),
        host=server.host,
        port=server.port,
        log_level=server.log_level,  # type: ignore[arg-type]  # checked there
        request_log=server.request_log,
    )


def _file_keys(file: Path | None) -> list[str]:
    """One key per line; empty lines do not count, and there are no comments, since a key may begin with any sign."""
    if file is None:
        return []
    try:
        lines = file.read_text("utf-8").splitlines()
    except UnicodeDecodeError:
        raise OptionError("api_key_file", file, "a text file with one key per line works") from None
    keys = [line.strip() for line in lines if line.strip()]
    if not keys:
        raise OptionError("api_key_file", file, "it holds no key; a text file with one key per line works")
    return keys
