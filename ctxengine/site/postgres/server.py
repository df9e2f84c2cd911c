"""The embedded Postgres server of one data folder, shared by every process that uses the folder.

The first user makes and starts it, later ones join, the last one stops it. Being alive is what `pg_isready` says, never
what a process number says: numbers are reused, and a killed server can stay as a zombie for ever.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from ctxengine.site import keys, places
from ctxengine.site.postgres.binaries import PostgresUnavailable, find_binaries, reachable_copy
from ctxengine.site.postgres.locks import FileLock, locked
from ctxengine.site.postgres.stale import drop_stale_lock_files

USER = "app"
DATABASE = "ctxengine"
_START_DEADLINE_S = 30
_TOOL_TIMEOUT_S = 120
_SOCKET_FILE = ".s.PGSQL.5432"
_SOCKET_PATH_LIMIT_BYTES = 100
"""The kernel refuses paths of 108 bytes; lock files and the end mark need a few more."""


class Address(NamedTuple):
    """What a client needs to connect."""

    socket_folder: Path
    user: str
    password: str
    database: str


class EmbeddedPostgres:
    """The Postgres server that lives in an instance's data folder.

    Making the object starts nothing and writes nothing.
    """

    def __init__(self, data: Path, *, durable: bool = True) -> None:
        """Name the server; nothing is made or started yet.

        Args:
            data: folder of the instance.
            durable: False for a server whose data nobody will miss: it waits for no disk.
        """
        self.durable = durable
        self.account = _account()
        self.home = self._home_for(data)
        self.cluster = self.home / "cluster"
        self.log_file = self.cluster / "server.log"
        self.socket_folder = self._socket_folder_for(self.home)
        self._password_file = self.home / "password"
        self._users = FileLock(self.home / ".users")
        self._lock_file = self.home / ".lock"

    def address(self) -> Address:
        """Where the server listens. The password is empty until the server has been made."""
        try:
            password = self._password_file.read_text(encoding="ascii").strip()
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            password = ""
        return Address(self.socket_folder, USER, password, DATABASE)

    def start(self) -> None:
        """Make the server where there is none, start it where it does not answer, and count as a user of it.

        Raises:
            PostgresUnavailable: no programs, no account to run as, or no answer in 30 seconds.
        """
        if self.account is None and os.geteuid() == 0:
            raise PostgresUnavailable(
                "Postgres does not run as root, and there is neither an account `postgres` nor `nobody`"
                " here. Create one, run as another user, or give a server by DATABASE_URL."
            )
        places.make_private(self.home, mode=0o711)
        with locked(self._lock_file):
            if not (self.cluster / "PG_VERSION").exists():
                self._make_cluster()
            self._own_folder(self.socket_folder)
            self._start_until_ready()
            self._users.acquire(shared=True)
        self._make_database()

    def ready(self) -> bool:
        """Whether something accepts connections on the server's socket; cheap enough for once a second."""
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(2)
            try:
                probe.connect(str(self.socket_folder / _SOCKET_FILE))
            except OSError:
                return False
        return True

    def stop(self) -> bool:
        """Stop being a user, and stop the server if nobody else is one. True where it was stopped."""
        if not self.home.exists():
            return False
        with locked(self._lock_file):
            self._users.release()
            alone = FileLock(self._users.path)
            if not alone.acquire(wait=False):
                return False
            try:
                self._run("pg_ctl", "-D", self.cluster, "-m", "fast", "-w", "stop", check=False)
            finally:
                alone.release()
        return True

    def remove(self) -> None:
        """Delete the server's files. Only for a stopped server that nobody will miss, such as a test's."""
        shutil.rmtree(self.home, ignore_errors=True)
        if self.socket_folder.parent != self.home:
            shutil.rmtree(self.socket_folder, ignore_errors=True)

    # --- making and starting ------------------------------------------------------------------------------------------

    def _make_cluster(self) -> None:
        shutil.rmtree(self.cluster, ignore_errors=True)
        self._own_folder(self.cluster)
        password = keys.kept(self._password_file, lambda: secrets.token_urlsafe(32))
        handle, name = tempfile.mkstemp(dir=self.home, prefix=".initdb-")
        try:
            with os.fdopen(handle, "w", encoding="ascii") as out:
                out.write(password + "\n")
            if self.account is not None:
                os.chown(name, self.account.pw_uid, self.account.pw_gid)
            # Without --no-sync this takes three times as long, and a cluster lost to a power cut at this
            # moment holds nothing yet.
            self._run(
                "initdb", "-D", self.cluster, "-U", USER, "-A", "scram-sha-256", f"--pwfile={name}",
                "-E", "UTF8", "--locale=C.UTF-8", "--no-sync",
            )  # fmt: skip
        except BaseException:
            shutil.rmtree(self.cluster, ignore_errors=True)
            raise
        finally:
            Path(name).unlink(missing_ok=True)

    def _start_until_ready(self) -> None:
        deadline = time.monotonic() + _START_DEADLINE_S
        options = (
            f"-c listen_addresses='' -c unix_socket_directories='{self.socket_folder}'"
            " -c unix_socket_permissions=0700 -c recovery_init_sync_method=syncfs"
            " -c max_connections=200"
        )
        if not self.durable:
            options += " -c fsync=off -c synchronous_commit=off -c full_page_writes=off"
        while not self._answers():
            if time.monotonic() > deadline:
                raise PostgresUnavailable(
                    f"Postgres did not answer within {_START_DEADLINE_S} s. The end of its log:\n"
                    + self._log_tail()
                )
            drop_stale_lock_files(self.cluster, self.socket_folder / (_SOCKET_FILE + ".lock"))
            self._run(
                "pg_ctl", "-D", self.cluster, "-l", self.log_file, "-w", "-t", "30",
                "-o", options, "start", check=False,
            )  # fmt: skip
            if not self._answers():
                time.sleep(0.2)

    def _answers(self) -> bool:
        return self.ready() and self._run("pg_isready", "-q", "-h", self.socket_folder, check=False)

    def _make_database(self) -> None:
        import psycopg  # an entry point that never starts the server should not pay for it

        address = self.address()
        with psycopg.connect(
            host=str(address.socket_folder),
            user=address.user,
            password=address.password,
            dbname="postgres",
            autocommit=True,
        ) as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE])
            if found.fetchone() is None:
                try:
                    connection.execute(f'CREATE DATABASE "{DATABASE}"')
                except (psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
                    return  # another process was quicker

    # --- programs and folders -----------------------------------------------------------------------------------------

    @cached_property
    def _programs(self) -> Path:
        version = self.cluster / "PG_VERSION"
        major = int(version.read_text(encoding="ascii")) if version.exists() else None
        folder = find_binaries(major=major)
        return folder if self.account is None else reachable_copy(folder, self.home)

    def _run(self, tool: str, *arguments: str | Path, check: bool = True) -> bool:
        """Run a Postgres program as the server's account; False (or an error) where it fails."""
        who: dict[str, Any] = {}
        if self.account is not None:
            who = {"user": self.account.pw_uid, "group": self.account.pw_gid, "extra_groups": []}
        # A file and not a pipe: the server inherits it and would keep a pipe open for ever.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                [self._programs / tool, *arguments],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", env=_clean_environment(),
                umask=0o077, timeout=_TOOL_TIMEOUT_S, check=False, **who,
            )  # fmt: skip
            if check and done.returncode:
                output.seek(0)
                said = output.read().decode("utf-8", "replace")[-2000:]
                raise PostgresUnavailable(f"{tool} failed with status {done.returncode}:\n{said}")
        return done.returncode == 0

    def _own_folder(self, folder: Path) -> None:
        owner = os.geteuid() if self.account is None else self.account.pw_uid
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if found.st_uid not in (owner, os.geteuid()):
            raise PostgresUnavailable(f"{folder} belongs to user {found.st_uid}; remove it.")
        if self.account is not None and found.st_uid != owner:
            os.chown(folder, self.account.pw_uid, self.account.pw_gid)

    def _log_tail(self) -> str:
        try:
            lines = self.log_file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return "(no log)"
        return "\n".join(lines[-15:])

    def _home_for(self, data: Path) -> Path:
        inside = data / "postgres"
        shadow = places.shadow_folder(inside)
        if self.account is None or (inside / "cluster").exists():
            return inside
        if places.open_to_others(data) and not (shadow / "cluster").exists():
            return inside
        return shadow

    @staticmethod
    def _socket_folder_for(home: Path) -> Path:
        inside = home / "run"
        if len(os.fsencode(inside / (_SOCKET_FILE + ".lock"))) <= _SOCKET_PATH_LIMIT_BYTES:
            return inside
        short = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
        return Path("/tmp") / f"ctxengine-{short}"  # noqa: S108  _own_folder refuses a stranger's


def _account() -> pwd.struct_passwd | None:
    """The account that root runs Postgres as, which refuses to run as root; None for ourselves."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    return None


def _clean_environment() -> dict[str, str]:
    """Our environment without what would change a server's or a client's behaviour."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PG", "LC_"))
        and name not in {"LANG", "LANGUAGE", "DATABASE_URL"}
        and not name.startswith("CTX_")
    }
    return kept | {"LC_ALL": "C.UTF-8"}
