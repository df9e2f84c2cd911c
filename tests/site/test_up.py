"""`manage.py up` from outside: one process tree that survives kills and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from ctxengine.site.postgres.server import EmbeddedPostgres

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.up,
    pytest.mark.skipif(sys.platform != "linux", reason="reads process trees from /proc"),
]
_PATIENCE_S = 60


class Running:
    """One `manage.py up` under test."""

    def __init__(self, data: Path, *options: str) -> None:
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("CTX_") and name not in {"DATABASE_URL", "CELERY_BROKER_URL"}
        }
        self.errors = (data / "stderr.txt").open("a+")
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--json", "--data", str(data), *options],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=self.errors, text=True,
        )  # fmt: skip

    def answer(self) -> dict[str, str]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.said()
        return dict(json.loads(line))

    def said(self) -> str:
        self.errors.seek(0)
        return self.errors.read()

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        rest, _ = self.process.communicate(timeout=_PATIENCE_S)
        assert rest == "", "stdout holds the one JSON line and nothing else"
        return self.process.returncode


@pytest.fixture
def data() -> Iterator[Path]:
    folder = Path(mkdtemp(dir=os.environ["CTX_TEST_RUN_FOLDER"], prefix="up "))
    folder.chmod(0o711)
    yield folder
    server = EmbeddedPostgres(folder)
    server.stop()
    server.remove()


@pytest.fixture
def start(data: Path) -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def begin(*options: str) -> Running:
        started.append(Running(data, *options))
        return started[-1]

    yield begin
    for running in started:
        if running.process.poll() is None:
            running.process.terminate()
            running.process.wait(_PATIENCE_S)
        running.errors.close()
        if running.process.stdout:
            running.process.stdout.close()


def get(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except OSError:
        return 0


def eventually(condition: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen"
        time.sleep(0.1)


def said_by(url: str) -> Any:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        # It holds the connection, and would be found open whenever it is collected.
        error.close()
        return None
    except OSError:
        return None


def gunicorns(data: Path) -> list[int]:
    """Processes that serve this data folder, parents before children."""
    return processes(data, b"gunicorn")


def processes(data: Path, word: bytes) -> list[int]:
    """Processes of this data folder with a word on their command line, parents before children."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
                environment = (entry / "environ").read_bytes()
            except OSError:
                continue
            ours = os.fsencode(f"CTX_DATA_DIR={data}") in environment
            if word in line and (ours or os.fsencode(data) in line):
                found.append(int(entry.name))
    return sorted(found)


def postmaster(data: Path) -> int:
    return int((EmbeddedPostgres(data).cluster / "postmaster.pid").read_text().split()[0])


def test_it_serves_survives_kills_and_ends_without_a_trace(
    data: Path, start: Callable[..., Running]
) -> None:
    running = start("--port", "0", "--no-samples")
    answer = running.answer()
    assert list(answer) == ["url", "username", "password", "api_key", "broker", "worker"]
    assert (answer["broker"], answer["worker"]) == ("embedded", "running")
    health = answer["url"] + "/healthz"
    assert get(health) == 200
    assert get(answer["url"] + "/login/") == 200

    second = start("--port", "0")
    assert second.process.wait(_PATIENCE_S) != 0
    assert f"already serves {data} at {answer['url']}" in second.said()
    assert get(health) == 200

    os.kill(gunicorns(data)[0], signal.SIGKILL)
    eventually(lambda: "web process had ended" in running.said(), "a new web process")
    eventually(lambda: get(health) == 200, "an answer of the new web process")

    os.kill(postmaster(data), signal.SIGKILL)
    eventually(lambda: "database had stopped" in running.said(), "a new Postgres")
    eventually(lambda: get(health) == 200, "an answer with the new Postgres")

    os.kill(processes(data, b"celery")[0], signal.SIGKILL)
    eventually(lambda: "worker process had ended" in running.said(), "a new worker")
    os.kill(processes(data, b"unixsocket:")[0], signal.SIGKILL)
    eventually(lambda: "broker process had ended" in running.said(), "a new broker")
    eventually(lambda: said_by(health) == {"status": "ok", "broker": "ok", "workers": 2}, "health")

    # Killed itself, it takes the web processes along; the next start finds database and login as they were.
    running.process.kill()
    running.process.wait()
    eventually(lambda: not gunicorns(data), "the end of the web processes")
    eventually(lambda: not processes(data, b"celery"), "the end of the worker")
    eventually(lambda: not processes(data, b"unixsocket:"), "the end of the broker")
    said_before = len(running.said())
    again = start("--port", "0")
    same = again.answer()
    # It loads the samples, which asks for jobs, before its own broker runs: nothing that a newcomer need read.
    assert '"level": "warning"' not in again.said()[said_before:]
    assert {**same, "url": ""} == {**answer, "url": ""}
    assert get(same["url"] + "/healthz") == 200
    assert again.end() == 0
    assert "Ctrl+C" not in again.said()
    assert gunicorns(data) == processes(data, b"celery") == processes(data, b"unixsocket:") == []
    assert not EmbeddedPostgres(data).ready()


def test_a_taken_port_is_said_before_anything_starts(
    data: Path, start: Callable[..., Running]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        running = start("--port", str(port))
        assert running.process.wait(_PATIENCE_S) == 1
    assert f"Port {port} on 127.0.0.1 is taken by another program. Choose another" in running.said()
    assert not EmbeddedPostgres(data).home.exists()
