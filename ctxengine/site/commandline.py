"""What has to happen before Django reads its settings: the data folder, its secrets, and a running database."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ctxengine.site import env, keys, places
from ctxengine.site.postgres.binaries import PostgresUnavailable
from ctxengine.site.postgres.server import EmbeddedPostgres

_NEEDS_NO_DATABASE = frozenset(
    {
        "", "check", "collectstatic", "compilemessages", "diffsettings", "findstatic", "help",
        "makemessages", "makemigrations", "spectacular", "startapp", "startproject", "strict_provider",
        "version",
    }
)  # fmt: skip
_STARTS_ITS_OWN = frozenset({"up"})


def take_data_option(argv: list[str]) -> list[str]:
    """Take `--data DIR` out of a command line and put it, made absolute, where settings find it.

    Settings are read before a command parses its own options, and every command knows this one.
    """
    kept: list[str] = []
    words = iter(argv)
    for word in words:
        if word == "--":
            return [*kept, word, *words]
        name, equals, value = word.partition("=")
        if name != "--data":
            kept.append(word)
            continue
        if not equals:
            value = next(words, "")
        if not value or value.startswith("-"):
            sys.exit("--data needs a folder: --data DIR")
        os.environ["CTX_DATA_DIR"] = str(Path(value).expanduser().absolute())
    return kept


@contextmanager
def database_for(argv: list[str]) -> Iterator[None]:
    """Let a command find its database running, and stop it afterwards if nobody else uses it."""
    command = argv[1] if len(argv) > 1 else ""
    asks_for_help = command.startswith("-") or {"-h", "--help", "--version"} & set(argv[2:])
    if asks_for_help or command in _NEEDS_NO_DATABASE:
        # makemigrations compares with the database only where one happens to run.
        warnings.filterwarnings("ignore", message="Got an error checking a consistent migration")
        yield
        return
    server = _prepare(command)
    try:
        yield
    finally:
        if server is not None:
            server.stop()


def _prepare(command: str) -> EmbeddedPostgres | None:
    """Make the instance's secrets and start its database; None where the command needs no server of ours."""
    try:
        data = places.data_folder()
        keys.ensure(data)
        if env.optional("DATABASE_URL") or command in _STARTS_ITS_OWN:
            return None
        server = EmbeddedPostgres(data)
        server.start()
    except (PostgresUnavailable, PermissionError, env.SettingError) as error:
        sys.exit(str(error))
    return server
