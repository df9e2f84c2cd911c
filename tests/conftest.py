"""Shared fixtures: a database of the run's own, no network, Hypothesis profiles, a browser, corpus and cases."""

from __future__ import annotations

import gc
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from ctxengine.site.postgres.locks import FileLock
from ctxengine.site.postgres.server import EmbeddedPostgres

ROOT = Path(__file__).resolve().parents[1]
RUN_FOLDER = "CTX_TEST_RUN_FOLDER"
"""Names the run's own folder to xdist workers."""
_RUN_PREFIX = "ctxengine-tests-"
_BEGUN_FIRST = ("up", "faults", "e2e", "long")
_ALIVE = ".alive"
"""A file that a run keeps locked while it lives, so that no other run takes its folder for a left-over."""

hypothesis_settings.register_profile(
    "dev", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.register_profile(
    "ci", max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.register_profile("nightly", max_examples=5_000, deadline=None)
hypothesis_settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


# --- the run's own folder and database --------------------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    """Make the run's folder (in the controller alone) and the settings that differ under test."""
    # The synchronous Playwright keeps an event loop in this thread, which Django would otherwise refuse.
    os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    settings.STORAGES["staticfiles"]["BACKEND"] = (
        "django.contrib.staticfiles.storage.StaticFilesStorage"
    )
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.AXES_ENABLED = False
    # Keys of the machine that runs the tests are nobody's to spend.
    settings.CTX_PROVIDER_KEYS, settings.CTX_PROVIDER_URLS = {}, {}
    # Jobs are run by the tests themselves (tests/work_off.py), or by workers that a test starts.
    settings.CTX_JOB_SENDER = ""
    if not hasattr(config, "workerinput"):
        _remove_left_over_runs()
        folder = Path(tempfile.mkdtemp(prefix=_RUN_PREFIX))
        folder.chmod(0o711)
        os.environ[RUN_FOLDER] = str(folder)
        alive = FileLock(folder / _ALIVE)
        alive.acquire()
        config.add_cleanup(lambda: _remove_run(folder))
        config.add_cleanup(alive.release)
    static = Path(os.environ[RUN_FOLDER]) / "static"
    static.mkdir(exist_ok=True)
    settings.STATIC_ROOT = static


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest and waits most: short tests fill the end of a run, when workers steal from each other."""
    items.sort(key=lambda item: not any(item.get_closest_marker(name) for name in _BEGUN_FIRST))


def pytest_collection_finish() -> None:
    """What was loaded and collected stays to the end: no pass of the garbage collector need go through it."""
    gc.collect()
    gc.freeze()


def _remove_run(folder: Path) -> None:
    server = EmbeddedPostgres(folder)
    server.stop()
    server.remove()
    shutil.rmtree(folder, ignore_errors=True)


def _remove_left_over_runs() -> None:
    """Runs that were killed leave a folder, and perhaps a server that nobody uses."""
    for folder in Path(tempfile.gettempdir()).glob(_RUN_PREFIX + "*"):
        if not folder.is_dir() or folder.stat().st_uid != os.geteuid():
            continue
        alive = FileLock(folder / _ALIVE)
        if alive.path.exists() and alive.acquire(wait=False):
            _remove_run(folder)
            alive.release()


@pytest.fixture(scope="session")
def embedded_postgres() -> Iterator[EmbeddedPostgres]:
    """The server of this test run, shared by its worker processes."""
    server = EmbeddedPostgres(Path(os.environ[RUN_FOLDER]), durable=False)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    request: pytest.FixtureRequest, django_db_modify_db_settings_parallel_suffix: None
) -> None:
    """Point Django at the run's server, unless DATABASE_URL names one. Tests without a database start none."""
    if os.environ.get("DATABASE_URL"):
        return
    from django.db import connections

    server: EmbeddedPostgres = request.getfixturevalue("embedded_postgres")
    address = server.address()
    connections["default"].settings_dict.update(
        NAME=address.database,
        USER=address.user,
        PASSWORD=address.password,
        HOST=str(address.socket_folder),
        PORT="",
    )


# --- no network -------------------------------------------------------------------------------------------------------

_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0", "::", ""})


class NetworkForbidden(RuntimeError):
    """A test tried to leave this machine."""


def _is_local(host: Any) -> bool:
    return host is None or str(host) in _LOCAL_HOSTS or str(host).startswith("127.")


@pytest.fixture(scope="session", autouse=True)
def _no_network() -> Iterator[None]:
    """Refuse connections and name look-ups beyond loopback and unix sockets."""
    patch = pytest.MonkeyPatch()
    connect, connect_ex, getaddrinfo = (
        socket.socket.connect,
        socket.socket.connect_ex,
        socket.getaddrinfo,
    )

    def check(host: Any) -> None:
        if not _is_local(host):
            raise NetworkForbidden(f"tests reach no network, but something asked for {host!r}")

    def guarded_connect(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX:
            check(address[0])
        connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> int:
        if self.family != socket.AF_UNIX:
            check(address[0])
        return connect_ex(self, address)

    def guarded_getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        check(host.decode() if isinstance(host, bytes) else host)
        return getaddrinfo(host, *args, **kwargs)

    patch.setattr(socket.socket, "connect", guarded_connect)
    patch.setattr(socket.socket, "connect_ex", guarded_connect_ex)
    patch.setattr(socket, "getaddrinfo", guarded_getaddrinfo)
    yield
    patch.undo()


# --- browser ----------------------------------------------------------------------------------------------------------


def _chromium() -> str | None:
    for name in ("/usr/bin/chromium", "chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found:
            return found
    return None


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """The installed Chromium, or a skip that says that there is none."""
    chromium = _chromium()
    if chromium is None:
        pytest.skip(
            "browser tests need Chromium, and none is on PATH (as root, `make test` installs it)"
        )
    return {
        **browser_type_launch_args,
        "executable_path": chromium,
        "args": [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
        ],
    }  # fmt: skip


# --- material beside the repository -----------------------------------------------------------------------------------


def _beside(name: str, variable: str) -> Path:
    folder = Path(os.environ.get(variable) or ROOT.parent / "shared" / name)
    if not folder.is_dir():
        pytest.skip(f"{name}: no folder {folder.name!r} beside this checkout; set {variable} to it")
    return folder


@pytest.fixture(scope="session")
def corpus_folder() -> Path:
    """The folder of foreign transcripts."""
    return _beside("corpus", "CTX_CORPUS_DIR")


@pytest.fixture(scope="session")
def cases_folder() -> Path:
    """The folder of behaviour cases."""
    return _beside("cases", "CTX_CASES_DIR")


@pytest.fixture(scope="session")
def bench_folder() -> Path:
    """The folder of the referee scripts."""
    return _beside("bench", "CTX_BENCH_DIR")
