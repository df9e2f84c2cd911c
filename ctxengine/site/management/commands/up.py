"""`manage.py up`: the whole product in one foreground process tree."""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import urllib.error
import urllib.request
from argparse import ArgumentParser
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from ctxengine.service.jobs.kinds import TAKES_LONG, WAITED_FOR, queue_on_broker
from ctxengine.site import env, instance, places
from ctxengine.site.broker import BrokerUnavailable, EmbeddedBroker
from ctxengine.site.commandline import add_data_option
from ctxengine.site.listening import PortTaken, listen_at, url_of
from ctxengine.site.postgres.binaries import PostgresUnavailable
from ctxengine.site.postgres.server import EmbeddedPostgres
from ctxengine.site.supervisor import Child, Supervisor, SupervisorError, ended_by_signals

_READY_WITHIN_S = 90
_TROUBLE = (
    PortTaken, PostgresUnavailable, BrokerUnavailable, SupervisorError, instance.AlreadyServed,
    PermissionError,
)  # fmt: skip


class Command(BaseCommand):
    """Starts the database, migrates, loads the samples, serves, and stays until it is told to stop."""

    help = (
        "Start everything (database, migrations, samples, broker, web server, worker) in the foreground"
        " and print the address, a login and an API key."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--port", type=_port, default=8000, help="default 8000; 0 takes a free one"
        )
        add_data_option(parser)
        parser.add_argument("--no-samples", action="store_true", help="load no sample sessions")
        parser.add_argument(
            "--json", action="store_true", help="print one JSON line on stdout when ready"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Serve until a signal comes.

        Raises:
            CommandError: a taken port, a data folder that is served already, no Postgres, or a web process that
                does not come up; no broker program, or a worker that does not come up.
        """
        with ended_by_signals():
            try:
                self._serve(options)
            except _TROUBLE as error:
                raise CommandError(str(error)) from error

    def _serve(self, options: dict[str, Any]) -> None:
        data = places.make_data_folder(settings.CTX_DATA_DIR)
        serving = instance.ServingLock(data)
        serving.take()
        try:
            with closing(listen_at(env.text("CTX_HOST", "127.0.0.1"), options["port"])) as bound:
                serving.announce(url_of(bound))
                self._run(data, bound, options)
        finally:
            serving.give_back()

    def _run(self, data: Path, bound: socket.socket, options: dict[str, Any]) -> None:
        web, workers, broker = _web(bound, data), _workers(data), _broker(data)
        server = None if env.optional("DATABASE_URL") else EmbeddedPostgres(data)
        supervisor = Supervisor(self._say)
        try:
            if server is not None:
                self._say("Starting Postgres.")
                server.start()
                settings.DATABASES["default"]["PASSWORD"] = server.address().password
                supervisor.add_check(lambda: _mend(server))
            if broker is not None:
                # This process makes ready before its broker runs: the sweeper sends what that asks for.
                settings.CTX_JOB_SENDER = ""
            login = self._prepare(data, samples=not options["no_samples"])
            url = url_of(bound)
            if broker is not None:
                supervisor.add(broker.child())
            supervisor.add(web)
            for worker in workers:
                supervisor.add(worker)
            supervisor.wait_until(
                lambda: _health(url) is not None, seconds=_READY_WITHIN_S, what="The web server"
            )
            supervisor.wait_until(
                lambda: _works(_health(url)), seconds=_READY_WITHIN_S, what="The worker"
            )
            self._announce(url, login, broker, as_json=options["json"])
            while True:
                supervisor.tick()
        finally:
            supervisor.stop()
            connections.close_all()
            if server is not None:
                server.stop()

    def _prepare(self, data: Path, *, samples: bool) -> instance.Login:
        from ctxengine.service import bootstrap
        from ctxengine.service import samples as sample_sessions

        self._say("Bringing the database up to date.")
        call_command("migrate", interactive=False, verbosity=0, stdout=sys.stderr)
        kept = instance.first_login(data)
        made = bootstrap.ensure_demo(
            username=kept.username, password=kept.password, api_key=kept.api_key
        )
        login = instance.Login(made.username, made.password, made.api_key)
        if login != kept:
            instance.keep_login(data, login)
        if samples and sample_sessions.samples_missing():
            self._say("Loading the sample sessions.")
            sample_sessions.load_samples()
        call_command("collectstatic", interactive=False, verbosity=0, stdout=sys.stderr)
        connections.close_all()
        return login

    def _announce(
        self, url: str, login: instance.Login, broker: EmbeddedBroker | None, *, as_json: bool
    ) -> None:
        if as_json:
            answer = {
                "url": url,
                "username": login.username,
                "password": login.password,
                "api_key": login.api_key,
                "broker": "embedded" if broker is not None else "given",
                "worker": "running",
            }
            self.stdout.write(json.dumps(answer))
        else:
            self.stdout.write(
                f"\nReady.\n  address   {url}\n  user      {login.username}\n"
                f"  password  {login.password}\n  API key   {login.api_key}\n\nCtrl-C stops it.\n"
            )
        self.stdout.flush()

    def _say(self, line: str) -> None:
        self.stderr.write(line, style_func=str)
        self.stderr.flush()


def _web(bound: socket.socket, data: Path) -> Child:
    """The web server, on the socket that is bound already."""
    command = [
        sys.executable, "-m", "gunicorn", "ctxengine.site.wsgi:application",
        "--bind", f"fd://{bound.fileno()}", "--worker-class", "gthread",
        "--workers", str(env.whole("CTX_WEB_WORKERS", 2, least=1, most=64)),
        "--threads", str(env.whole("CTX_WEB_THREADS", 16, least=1, most=256)),
        "--graceful-timeout", "10", "--log-level", "warning", "--no-control-socket",
        "--config", "python:ctxengine.site.web",
    ]  # fmt: skip
    return Child(
        "web", command, _environment(data), str(places.CHECKOUT), inherited=(bound.fileno(),)
    )


def _workers(data: Path) -> list[Child]:
    """A worker for what turns and people wait for, and one for what takes long: the one never waits for the other."""
    processes = env.whole("CTX_WORKER_PROCESSES", 2, least=1, most=64)
    return [
        _worker(data, "worker", WAITED_FOR, processes),
        _worker(data, "probes", TAKES_LONG, 1),
    ]


def _worker(data: Path, name: str, queues: Sequence[str], processes: int) -> Child:
    command = [
        sys.executable, "-m", "celery", "--quiet", "-A", "workers.app", "worker",
        "--queues", ",".join(map(queue_on_broker, queues)), "--hostname", f"{name}@%h",
        "--concurrency", str(processes),
        "--loglevel", "WARNING", "--without-gossip", "--without-mingle",
    ]  # fmt: skip
    # Told to end, it gives running jobs a few seconds; what they do not finish is taken up at the next start.
    environment = _environment(data) | {"REMAP_SIGTERM": "SIGQUIT"}
    # Its log is on stderr; on stdout Celery tells a person at a terminal of its own what a second Ctrl-C does.
    return Child(name, command, environment, str(places.CHECKOUT), silent=True)


def _broker(data: Path) -> EmbeddedBroker | None:
    return None if env.optional("CELERY_BROKER_URL") else EmbeddedBroker(data)


def _environment(data: Path) -> dict[str, str]:
    return os.environ | {
        "CTX_DATA_DIR": str(data),
        "DJANGO_SETTINGS_MODULE": os.environ["DJANGO_SETTINGS_MODULE"],
    }


def _mend(server: EmbeddedPostgres) -> bool:
    if server.ready():
        return False
    server.start()
    return True


def _health(url: str) -> dict[str, Any] | None:
    """What the health check says; None where it does not answer, or not well."""
    host = settings.ALLOWED_HOSTS[0].lstrip(".")
    request = urllib.request.Request(  # noqa: S310  our own http address
        url + "/healthz", headers={"Host": "localhost" if host == "*" else host}
    )
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(request, timeout=5) as answer:
            return dict(json.load(answer)) if answer.status == 200 else None
    except (urllib.error.URLError, OSError, ValueError):
        return None


def _works(health: dict[str, Any] | None) -> bool:
    return bool(health and health.get("workers"))


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; give a number from 0 to 65535")
    return int(text)
