"""One instance of the product with one web worker, and the referee's bare server beside it on the same Postgres."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bench import referee

ROOT = Path(__file__).resolve().parents[1]
_READY_WITHIN_S = 180
_IDLE_S = 1.0
"""A connection that lay idle for longer may have been closed by the server."""


@contextmanager
def product(data: Path, *, workers: int = 1, threads: int = 2) -> Iterator[dict[str, Any]]:
    """Start `manage.py up` on a data folder; gives what its JSON line says."""
    command = [
        sys.executable, "manage.py", "up", "--json", "--port", "0", "--data", str(data), "--no-samples",
    ]  # fmt: skip
    environment = os.environ | {
        "CTX_WEB_WORKERS": str(workers),
        "CTX_WEB_THREADS": str(threads),
    }
    child = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert child.stdout is not None
        line = child.stdout.readline()
        if not line:
            raise RuntimeError("manage.py up ended before it was ready; run it by hand to see why.")
        yield json.loads(line)
    finally:
        ended(child)


@contextmanager
def bare_server(dsn: str) -> Iterator[int]:
    """Start the referee's WSGI application with one worker; gives its port."""
    with closing_socket() as port:
        pass
    environment = os.environ | {
        "FLOOR_DSN": dsn,
        "TIKTOKEN_CACHE_DIR": os.environ.get("TIKTOKEN_CACHE_DIR") or referee.ranks_folder(),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [
        sys.executable, "-m", "gunicorn", "-w", "1", "--bind", f"127.0.0.1:{port}",
        "--worker-class", "gthread", "--threads", "2", "--keep-alive", "75",
        "--log-level", "warning", "--no-control-socket", "floor:application()",
    ]  # fmt: skip
    child = subprocess.Popen(
        command, cwd=referee.FOLDER, env=environment, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(port)
        yield port
    finally:
        ended(child)


@contextmanager
def closing_socket() -> Iterator[int]:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        yield probe.getsockname()[1]


class Client:
    """One kept-alive connection that posts JSON text."""

    def __init__(self, port: int, headers: dict[str, str] | None = None) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port)
        self._used = 0.0
        self._headers = {"Content-Type": "application/json"} | (headers or {})

    def get(self, path: str) -> bytes:
        """The body of a good answer."""
        return self._ask("GET", path, None, {})

    def post(self, path: str, body: str, **headers: str) -> bytes:
        """The body of a good answer."""
        return self._ask("POST", path, body.encode(), headers)

    def _ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> bytes:
        if time.monotonic() - self._used > _IDLE_S:
            self._connect()
        self._connection.request(method, path, body, self._headers | headers)
        answer = self._connection.getresponse()
        text = answer.read()
        self._used = time.monotonic()
        if answer.status >= 300:
            raise RuntimeError(f"{path}: {answer.status} {text[:400].decode(errors='replace')}")
        return text

    def _connect(self) -> None:
        self._connection.close()
        self._connection.connect()
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def wait_for(port: int) -> None:
    """Wait until something listens there."""
    until = time.monotonic() + _READY_WITHIN_S
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise RuntimeError(f"Nothing answered on port {port} within {_READY_WITHIN_S} s.")


def ended(child: subprocess.Popen[Any]) -> None:
    """End a process, kindly first."""
    child.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        child.wait(30)
    if child.poll() is None:
        child.kill()
