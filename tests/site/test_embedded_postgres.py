"""The embedded Postgres: started once, shared, restarted after a kill, stopped by its last user."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import psycopg
import pytest

from ctxengine.site.databases import database_settings
from ctxengine.site.env import SettingError
from ctxengine.site.postgres import stale
from ctxengine.site.postgres.binaries import PostgresUnavailable, find_binaries
from ctxengine.site.postgres.server import EmbeddedPostgres

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def data() -> Iterator[Path]:
    """A data folder inside the run's own one, which the server's account can reach."""
    parent = Path(os.environ["CTX_TEST_RUN_FOLDER"])
    folder = Path(mkdtemp(dir=parent))
    folder.chmod(0o711)
    yield folder
    server = EmbeddedPostgres(folder)
    server.stop()
    server.remove()


def connect(server: EmbeddedPostgres) -> psycopg.Connection[Any]:
    address = server.address()
    return psycopg.connect(
        host=str(address.socket_folder),
        user=address.user,
        password=address.password,
        dbname=address.database,
        autocommit=True,
    )


def postmaster(server: EmbeddedPostgres) -> int:
    return int((server.cluster / "postmaster.pid").read_text().split()[0])


def test_a_killed_server_comes_back_with_its_rows(data: Path) -> None:
    server = EmbeddedPostgres(data)
    assert not server.ready()
    server.start()
    assert server.ready()
    with connect(server) as connection:
        connection.execute("CREATE TABLE kept (n int)")
        connection.execute("INSERT INTO kept VALUES (42)")
        role = connection.execute("SELECT rolcreatedb FROM pg_roles WHERE rolname = current_user")
        assert role.fetchone() == (True,)
    os.kill(postmaster(server), signal.SIGKILL)
    server.start()
    with connect(server) as connection:
        assert connection.execute("SELECT n FROM kept").fetchone() == (42,)


def test_processes_share_a_server_and_the_last_one_stops_it(data: Path) -> None:
    script = (
        "import sys; from pathlib import Path;"
        "from ctxengine.site.postgres.server import EmbeddedPostgres;"
        "server = EmbeddedPostgres(Path(sys.argv[1])); server.start(); print('up', flush=True);"
        "sys.stdin.readline(); print(server.stop(), flush=True)"
    )
    others = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(data)],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(3)
    ]  # fmt: skip
    assert [other.stdout and other.stdout.readline() for other in others] == ["up\n"] * 3
    server = EmbeddedPostgres(data)
    server.start()
    first = postmaster(server)
    # A user that is killed must not keep the server for ever, and must not take it down either.
    others[0].kill()
    others[0].communicate()
    assert others[1].communicate("\n")[0] == "False\n"
    assert server.stop() is False
    assert others[2].communicate("\n")[0] == "True\n"
    assert not server.ready()
    server.start()
    assert postmaster(server) != first
    assert server.stop() is True


def test_lock_files_of_a_dead_server_are_dropped_and_of_a_living_one_kept(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    pid_file = tmp_path / "postmaster.pid"
    socket_lock = tmp_path / ".s.PGSQL.5432.lock"
    pid_file.write_text(f"{ended.pid}\n/data\n")
    # This test's own number, but it works elsewhere than in the cluster: a reused number.
    socket_lock.write_text(f"{os.getpid()}\n/data\n")
    stale.drop_stale_lock_files(tmp_path, socket_lock)
    assert not pid_file.exists()
    assert not socket_lock.exists()
    with subprocess.Popen(["sleep", "60"], cwd=tmp_path) as living:
        pid_file.write_text(f"{living.pid}\n/data\n")
        stale.drop_stale_lock_files(tmp_path, socket_lock)
        assert pid_file.exists()
        living.kill()


def test_a_long_path_gets_a_short_socket_folder(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path / ("long" * 30))
    assert len(str(server.socket_folder)) < 40
    assert server.socket_folder != EmbeddedPostgres(tmp_path / ("gnol" * 30)).socket_folder


def test_programs_of_another_major_version_are_refused_with_both_versions_named() -> None:
    with pytest.raises(PostgresUnavailable, match=r"made by Postgres 9, but only \d+"):
        find_binaries(major=9)


def test_a_folder_without_programs_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CTX_PG_BIN", str(tmp_path))
    with pytest.raises(PostgresUnavailable, match="make install"):
        find_binaries(major=None)


def test_database_url_takes_the_place_of_the_embedded_server(tmp_path: Path) -> None:
    entry = database_settings(
        url="postgresql://u:p@db.example:5433/name?sslmode=require", data=tmp_path, pool_size=7
    )
    assert (entry["HOST"], entry["PORT"], entry["NAME"]) == ("db.example", 5433, "name")
    assert entry["OPTIONS"]["sslmode"] == "require"
    assert entry["OPTIONS"]["pool"]["max_size"] == 7
    socket_entry = database_settings(
        url="postgresql://u:p@/name?host=%2Frun%2Fpg", data=tmp_path, pool_size=0
    )
    assert "pool" not in socket_entry["OPTIONS"]
    assert "/run/pg" in (socket_entry["OPTIONS"].get("host"), socket_entry["HOST"])


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:secret@h/n",
        "sqlite:///x",
        "postgresql://u:secret@h:99x/n",
        "postgresql://u:secret@h",
    ],
)
def test_other_addresses_are_refused_without_repeating_the_password(
    tmp_path: Path, url: str
) -> None:
    with pytest.raises(SettingError, match="DATABASE_URL") as refused:
        database_settings(url=url, data=tmp_path, pool_size=0)
    assert "secret" not in str(refused.value)
