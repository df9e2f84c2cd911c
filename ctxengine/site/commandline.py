"""What has to happen before Django reads its settings: the data folder, its secrets, and a running database."""

from __future__ import annotations

import os
import runpy
import sys
import warnings
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from django.db import DatabaseError, OperationalError, ProgrammingError

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
_NEEDS_A_SERVED_INSTANCE = frozenset(
    {
        "add_person", "backup", "export_person", "export_session", "import_transcripts", "issue_key", "probe", "prove_requests",
        "replay", "restore_drill", "verify_ledger",
    }
)  # fmt: skip
_WRONGLY_SET_UP = 2
"""Exit status where the command line, a setting or the instance is not what a command needs."""
_NOBODY_READS = 141
"""Exit status of a command that a closed pipe ended, as shells count it."""
_INTERRUPTED = 130
"""The same for Ctrl-C."""
_TABLE_OR_COLUMN_MISSING = frozenset({"42P01", "42703"})
"""Postgres' codes for a table and a column that are not there."""


def add_data_option(parser: ArgumentParser) -> None:
    """Show `--data` in a command's help; it is read before settings are, and stands in the parser for the help alone."""
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="folder of the instance's files (default: CTX_DATA_DIR, else the checkout's)",
    )


@contextmanager
def told_in_a_line() -> Iterator[None]:
    """Turn what is no defect into one line and an exit status: a wrong setting, a database that cannot serve, a closed pipe."""
    try:
        try:
            yield
        finally:
            # Otherwise the interpreter meets the closed pipe at its end, and complains of it.
            sys.stdout.flush()
    except env.SettingError as error:
        _refuse(str(error))
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())
        raise SystemExit(_NOBODY_READS) from None
    except KeyboardInterrupt:
        raise SystemExit(_INTERRUPTED) from None
    except DatabaseError as error:
        told = _about_the_database(error)
        if told is None:
            raise
        _refuse(told)


def _about_the_database(error: DatabaseError) -> str | None:
    """What is wrong with the database rather than with us; None for a defect, which keeps its traceback."""
    state = getattr(error.__cause__, "sqlstate", None)
    if isinstance(error, ProgrammingError) and state in _TABLE_OR_COLUMN_MISSING:
        return "The database lacks tables of this version: run `manage.py migrate`, or start `manage.py up`."
    if isinstance(error, OperationalError):
        first = (str(error).strip().splitlines() or ["no reason given"])[0]
        return f"The database cannot be used: {first}"
    return None


def _refuse(line: str) -> NoReturn:
    sys.stderr.write(line + "\n")
    raise SystemExit(_WRONGLY_SET_UP) from None


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
            _refuse("--data needs a folder: --data DIR")
        os.environ["CTX_DATA_DIR"] = str(Path(value).expanduser().absolute())
    return kept


@contextmanager
def database_for(argv: list[str]) -> Iterator[None]:
    """Let a command find its database running, and stop it afterwards if nobody else uses it."""
    command = argv[1] if len(argv) > 1 else ""
    asks_for_help = command.startswith("-") or {"-h", "--help", "--version"} & set(argv[2:])
    if asks_for_help or command in _NEEDS_NO_DATABASE or _replays_files(argv):
        # makemigrations compares with the database only where one happens to run.
        warnings.filterwarnings("ignore", message="Got an error checking a consistent migration")
        yield
        return
    # Nothing is made or started for settings that are refused afterwards. The real reading comes later: it needs the secrets.
    runpy.run_module("ctxengine.site.settings")
    server = _prepare(command)
    try:
        yield
    finally:
        if server is not None:
            server.stop()


def _replays_files(argv: list[str]) -> bool:
    """Whether a replay names files alone: a session is named by its id, and only that one lies in the database."""
    return argv[1:2] == ["replay"] and any(map(_is_there, argv[2:]))


def _is_there(word: str) -> bool:
    try:
        return Path(word).exists()
    except (OSError, ValueError):
        # Too long for a name, or with a character that no name has: code for `shell -c`, say.
        return False


def _prepare(command: str) -> EmbeddedPostgres | None:
    """Make the instance's secrets and start its database; None where the command needs no server of ours."""
    try:
        data = places.data_folder()
        server = None if env.optional("DATABASE_URL") else EmbeddedPostgres(data)
        made = server is None or (server.cluster / "PG_VERSION").exists()
        if command in _NEEDS_A_SERVED_INSTANCE and not made:
            _refuse(
                f"{data} holds no instance that was ever served. Start one there with `manage.py up`, or name another"
                " folder with --data or CTX_DATA_DIR."
            )
        keys.ensure(data)
        if server is None or command in _STARTS_ITS_OWN:
            return None
        server.start()
    except (PostgresUnavailable, PermissionError) as error:
        _refuse(str(error))
    return server
