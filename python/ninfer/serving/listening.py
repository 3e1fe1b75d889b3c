"""The sockets that a server listens on."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import ExitStack

from ninfer.errors import OptionError

# Connections that the system may hold until the server takes them; the loop takes up to as many in one turn.
BACKLOG = 128
# A name may have addresses that this machine lacks: `localhost` where IPv6 is turned off.
_ABSENT = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})


def listen(host: str, port: int) -> list[socket.socket]:
    """Listening sockets on every address of `host`; port 0 picks a free one.

    Raises OptionError for a host that leads nowhere or is not this machine's, and for a port that is taken.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "it is no host name"
        raise OptionError("host", host, f"{reason}; an address of this machine works, such as 127.0.0.1") from None
    addresses = list(dict.fromkeys((family, address[0]) for family, _, _, _, address in found))
    sockets: list[socket.socket] = []
    absent: OSError | None = None
    with ExitStack() as undo:
        for family, address in addresses:
            try:
                one = undo.enter_context(socket.socket(family, socket.SOCK_STREAM))
                _bind(one, str(address), port, alone=len(addresses) == 1)
            except OSError as error:
                if error.errno not in _ABSENT:
                    raise _refused(host, port, error) from None
                absent = error
                continue
            port = one.getsockname()[1]
            sockets.append(one)
        if not sockets:
            raise _refused(host, port, absent or OSError(errno.EADDRNOTAVAIL, "it has no address"))
        undo.pop_all()
    return sockets


def server_url(host: str, sockets: list[socket.socket]) -> str:
    """The address to type: the real port, IPv6 in brackets."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{sockets[0].getsockname()[1]}"


def _bind(one: socket.socket, address: str, port: int, *, alone: bool) -> None:
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if one.family == socket.AF_INET6:
        # Alone, `::` takes IPv4 too; beside a socket for IPv4 it must not.
        one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if alone else 1)
    one.bind((address, port))
    one.listen(BACKLOG)
    one.setblocking(False)


def _refused(host: str, port: int, error: OSError) -> OptionError:
    if error.errno == errno.EADDRINUSE:
        return OptionError("port", port, f"another program listens on {host} port {port}; another port works, or 0")
    if error.errno == errno.EACCES:
        return OptionError("port", port, "only the administrator may listen there; a port from 1024 works")
    reason = os.strerror(error.errno) if error.errno else str(error)
    return OptionError("host", host, f"{reason}; an address of this machine works, such as 127.0.0.1")
