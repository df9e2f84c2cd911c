"""The socket that the web server listens on: taken before anything starts, kept over restarts of the server."""

from __future__ import annotations

import errno
import socket


class PortTaken(RuntimeError):
    """Nothing can listen at the asked address; the message says why and what to do."""


def listen_at(host: str, port: int) -> socket.socket:
    """A bound socket that child processes may inherit. Port 0 takes any free one.

    Raises:
        PortTaken: another program has the port, or this account may not use it.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        # Two sockets may be bound to one port here, but only one of them may listen.
        bound.listen(512)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            reason = f"Port {port} on {host} is taken by another program."
        elif error.errno == errno.EACCES:
            reason = f"This account may not listen on port {port}."
        else:
            reason = f"Cannot listen on {host} port {port}: {error.strerror or error}."
        raise PortTaken(f"{reason} Choose another with --port (make up PORT=…).") from error
    bound.set_inheritable(True)
    return bound


def url_of(bound: socket.socket) -> str:
    """The address that a browser on this machine opens."""
    host, port = bound.getsockname()[:2]
    if host in {"0.0.0.0", "::"}:  # noqa: S104  compared, not bound
        host = "127.0.0.1" if host == "0.0.0.0" else "::1"  # noqa: S104
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
