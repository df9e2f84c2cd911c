"""Dumps of the database, and the drill that shows a dump can be lived on: restored beside, walked and proven.

Postgres' own programs do the work; nothing of the format is ours.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from django.db import connection

from ctxengine.site.postgres.binaries import find_binaries

Database = Mapping[str, Any]
"""One entry of Django's DATABASES."""


class BackupFailed(RuntimeError):
    """A program of Postgres refused; the message is what it said, without a password."""


class Scratch(NamedTuple):
    """A database that exists for one drill."""

    name: str
    url: str
    """Address for DATABASE_URL, password included."""


def server_major() -> int:
    """Major version of the server that Django is connected to: its tools must not be older."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        return int(cursor.fetchone()[0]) // 10_000


def write_dump(database: Database, to: Path, *, major: int) -> int:
    """Dump the whole database into one file that only its owner may read; gives its size in bytes.

    It is written beside its place first, so that a broken dump never stands where a good one is looked for.

    Args:
        major: the server's major version, which `pg_dump` must at least have.

    Raises:
        BackupFailed: `pg_dump` refused.
    """
    part = to.with_name(to.name + ".part")
    part.touch(mode=0o600, exist_ok=False)
    try:
        _run(database, major, "pg_dump", "--format=custom", f"--file={part}")
        with part.open("rb") as written:
            os.fsync(written.fileno())
        part.replace(to)
    finally:
        part.unlink(missing_ok=True)
    return to.stat().st_size


@contextmanager
def restored(database: Database, dump: Path, *, major: int) -> Iterator[Scratch]:
    """A database of its own on the same server, filled from a dump, and gone afterwards.

    Raises:
        BackupFailed: the account may make no database, or the dump cannot be read.
    """
    name = f"ctx_drill_{secrets.token_hex(6)}"
    # template0 takes no connections, so that nobody's can be in the way of the copy; template1 may have any.
    _run(database, major, "createdb", "--template=template0", name)
    try:
        target = {**database, "NAME": name}
        _run(target, major, "pg_restore", "--no-owner", "--exit-on-error", f"--dbname={name}", dump)
        yield Scratch(name, _url(target))
    finally:
        _run(database, major, "dropdb", "--force", name)


def _run(database: Database, major: int, tool: str, *arguments: str | Path) -> None:
    done = subprocess.run(
        [find_binaries(major=major) / tool, "--no-password", *arguments],
        env=_environment(database),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no reason given"]
        raise BackupFailed(f"{tool}: {said[-1]}")


def _environment(database: Database) -> dict[str, str]:
    named = {
        "PGHOST": database.get("HOST"),
        "PGPORT": database.get("PORT"),
        "PGUSER": database.get("USER"),
        "PGPASSWORD": database.get("PASSWORD"),
        "PGDATABASE": database.get("NAME"),
    }
    options = database.get("OPTIONS", {})
    named |= {
        "PGSSLMODE": options.get("sslmode"),
        "PGSSLROOTCERT": options.get("sslrootcert"),
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return kept | {name: str(value) for name, value in named.items() if value}


def _url(database: Database) -> str:
    user, password = (
        quote(str(database.get(part) or ""), safe="") for part in ("USER", "PASSWORD")
    )
    host = quote(str(database.get("HOST") or "localhost"), safe="")
    port = f":{database['PORT']}" if database.get("PORT") else ""
    options = database.get("OPTIONS", {})
    named = {name: options[name] for name in ("sslmode", "sslrootcert") if options.get(name)}
    query = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in named.items())
    return f"postgresql://{user}:{password}@{host}{port}/{database['NAME']}" + (
        f"?{query}" if query else ""
    )
