"""A stage for worker faults: a database, a broker and a worker as real processes, each of which a test may kill.

The test's own process speaks to the stage's database through Django while `stage.on()` holds.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

import psycopg
from django.core.management import call_command
from django.db import connections
from kombu import Connection

from ctxengine.site.broker import EmbeddedBroker
from ctxengine.site.postgres.server import EmbeddedPostgres
from tests.faults import deaths
from workers.app import app, queue_on_broker, transport_options
from workers.tasks import RUN_JOB

ROOT = Path(__file__).resolve().parents[2]
RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
PATIENCE_S = 60.0
_TABLES = "tables"
"""The database that the others are copied from: it is migrated once for each server."""


def eventually(
    condition: Callable[[], Any], what: str, said: Callable[[], str] = lambda: ""
) -> None:
    """Wait until something holds, and fail with its name, and what was said, where it does not come to that."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        failure = f"{what} did not happen within {PATIENCE_S:.0f} s"
        assert time.monotonic() < deadline, f"{failure}\n{said()}"
        time.sleep(0.02)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Process:
    """One process in a session of its own, so that it can be killed with all that it started."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path) -> None:
        self._command = command
        self._environment = environment
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, env=self._environment, cwd=ROOT, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def lives(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """End it with signal 9, and its children with it."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


class Broker:
    """A broker: what starts it, where it listens, and the data that it may lose."""

    name = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "broker"
        self.process: Process
        self.url: str

    def start(self) -> None:
        self.data.mkdir(exist_ok=True, mode=0o700)
        self.process.start()

    def lose_everything(self) -> None:
        """Kill it and remove its data."""
        self.process.kill()
        shutil.rmtree(self.data, ignore_errors=True)

    def end(self) -> None:
        self.process.kill()


class Embedded(Broker):
    """The one that `manage.py up` runs."""

    name = "embedded"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        embedded = EmbeddedBroker(folder)
        self.data = embedded.home
        self.url = embedded.url()
        child = embedded.child()
        assert child.before is not None
        self._prepare = child.before
        self.process = Process(child.command, dict(child.environment), folder / "broker.log")

    def start(self) -> None:
        self._prepare(0)
        self.process.start()


class Redis(Broker):
    """The redis-server of the system."""

    name = "redis"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        port = free_port()
        self.url = f"redis://127.0.0.1:{port}/0"
        command = [
            "redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", str(self.data),
            "--appendonly", "yes", "--appendfsync", "always", "--save", "",
        ]  # fmt: skip
        self.process = Process(command, dict(os.environ), folder / "broker.log")


class Rabbit(Broker):
    """The RabbitMQ of the system, as a node of its own with a port mapper of its own."""

    name = "rabbitmq"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        port, mapper_port = free_port(), free_port()
        self.url = f"amqp://guest:guest@127.0.0.1:{port}//"
        environment = os.environ | {
            "HOME": str(folder),
            "ERL_EPMD_PORT": str(mapper_port),
            "RABBITMQ_NODENAME": f"ctx{port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(self.data),
            "RABBITMQ_LOG_BASE": str(folder / "rabbitmq-log"),
            "RABBITMQ_PID_FILE": str(folder / "rabbitmq.pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_CONFIG_FILE": str(folder / "none"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1",
        }
        log = folder / "broker.log"
        self.process = Process([str(RABBITMQ)], environment, log)
        self._mapper = Process(["epmd", "-port", str(mapper_port)], environment, log)
        self._mapper.start()

    def end(self) -> None:
        super().end()
        self._mapper.kill()


def available_brokers() -> dict[str, type[Broker]]:
    """The kinds of broker that this machine can run."""
    found: dict[str, type[Broker]] = {"embedded": Embedded}
    if shutil.which("redis-server"):
        found["redis"] = Redis
    if RABBITMQ.exists() and shutil.which("epmd"):
        found["rabbitmq"] = Rabbit
    return found


class Stage:
    """One broker, one worker, one database of a shared server."""

    def __init__(
        self,
        kind: type[Broker],
        folder: Path,
        server: EmbeddedPostgres,
        database: str,
        extra: Mapping[str, str] | None = None,
        *,
        application: str = "workers.app",
    ) -> None:
        """Nothing is started yet; `extra` is added to the worker's environment."""
        folder.mkdir()
        self.broker = kind(folder)
        self.server = server
        self.database = database
        self.folder = folder
        self.log = folder / "worker.log"
        command = [
            sys.executable, "-m", "celery", "--quiet", "-A", application, "worker",
            "--concurrency", "2", "--loglevel", "WARNING", "--without-gossip", "--without-mingle",
        ]  # fmt: skip
        self.environment = environment_of(server, database, folder) | {
            "CELERY_BROKER_URL": self.broker.url,
            deaths.FILE: str(self.death),
            **(extra or {}),
        }
        self.worker = Process(command, self.environment, self.log)

    @contextmanager
    def on(self) -> Iterator[None]:
        """Speak to this stage's database, and to its broker."""
        from django.conf import settings

        _spoken_to.append(self.broker.url)
        before = settings.CTX_JOB_SENDER
        settings.CTX_JOB_SENDER = f"{__name__}.send_job"
        try:
            with speaking_to(self.server, self.database):
                yield
        finally:
            settings.CTX_JOB_SENDER = before
            _spoken_to.pop()

    @property
    def death(self) -> Path:
        """Where a test says what shall happen to a worker that dies."""
        return self.folder / "death.json"

    def said(self) -> str:
        return self.log.read_text(errors="replace")[-3000:] if self.log.exists() else ""

    def end(self) -> None:
        self.worker.kill()
        self.broker.end()


def environment_of(server: EmbeddedPostgres, database: str, folder: Path) -> dict[str, str]:
    """What a process of the product needs to serve a database of this server; `folder` is its data folder."""
    address = server.address()
    ours = {name: value for name, value in os.environ.items() if not name.startswith("CTX_")}
    return ours | {
        "CTX_DATA_DIR": str(folder),
        "CTX_FIELD_KEY": _field_key(),
        "DJANGO_SETTINGS_MODULE": "ctxengine.site.settings",
        "DATABASE_URL": (
            f"postgresql://{address.user}:{quote(address.password)}"
            f"@{quote(str(address.socket_folder), safe='')}/{database}"
        ),
    }


def kill_postgres(server: EmbeddedPostgres) -> None:
    """End the server with signal 9."""
    os.kill(pid_of(server), signal.SIGKILL)


def pid_of(server: EmbeddedPostgres) -> int:
    """The number of the server's first process."""
    return int((server.cluster / "postmaster.pid").read_text().split()[0])


@contextmanager
def speaking_to(server: EmbeddedPostgres, database: str) -> Iterator[None]:
    """Let Django's default connection be one to a database of this server."""
    default = connections["default"]
    before = {
        name: default.settings_dict[name] for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT")
    }
    address = server.address()
    default.close()
    default.settings_dict.update(
        NAME=database, USER=address.user, PASSWORD=address.password,
        HOST=str(address.socket_folder), PORT="",
    )  # fmt: skip
    try:
        yield
    finally:
        default.close()
        default.settings_dict.update(before)


def make_database(server: EmbeddedPostgres, name: str, *, template: str) -> None:
    """A database of the server's, copied from another."""
    with _control(server) as control:
        control.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')


def make_schema(server: EmbeddedPostgres, name: str) -> None:
    """A database of the server's with the product's tables, and nothing in them."""
    with _control(server) as control:
        made = control.execute("SELECT 1 FROM pg_database WHERE datname = %s", [_TABLES])
        known = made.fetchone() is not None
    if not known:
        make_database(server, _TABLES, template="template1")
        with speaking_to(server, _TABLES):
            call_command("migrate", interactive=False, verbosity=0)
    make_database(server, name, template=_TABLES)


def _control(server: EmbeddedPostgres) -> psycopg.Connection[Any]:
    address = server.address()
    return psycopg.connect(
        host=str(address.socket_folder), user=address.user, password=address.password,
        dbname="postgres", autocommit=True,
    )  # fmt: skip


_spoken_to: list[str] = []
"""The broker of the stage that the test speaks to."""


def send_job(tenant_id: UUID, job_id: UUID, queue: str) -> None:
    """The product's sender, to the broker of the stage."""
    options = {**transport_options(_spoken_to[-1]), "max_retries": 1}
    with Connection(_spoken_to[-1], transport_options=options, connect_timeout=2) as broker:
        app.send_task(
            RUN_JOB,
            (str(tenant_id), str(job_id)),
            queue=queue_on_broker(queue),
            connection=broker,
            retry=False,
        )


def _field_key() -> str:
    from django.conf import settings

    key: str = settings.CTX_FIELD_KEY
    return key
