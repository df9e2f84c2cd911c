"""A dump can be lived on: what was written is restored beside, walked, proven, and removed again."""

from __future__ import annotations

import io
import json
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from ctxengine.ledger.models import Event
from ctxengine.site.management.commands import restore_drill
from tests.cast import Runtime

pytestmark = pytest.mark.django_db(transaction=True)


def told(*words: str) -> dict[str, Any]:
    """What a command prints, also where it ends non-zero."""
    out = io.StringIO()
    with suppress(SystemExit):
        call_command(*words, "--json", stdout=out)
    said: dict[str, Any] = json.loads(out.getvalue())
    return said


@pytest.fixture
def scratch(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name that this test's drill gives its database: other tests' come and go on the same server meanwhile."""
    token = secrets.token_hex(6)
    monkeypatch.setattr(secrets, "token_hex", lambda size: token[: 2 * size])
    return f"ctx_drill_{token}"


def exists(database: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_database WHERE datname = %s", [database])
        return bool(cursor.fetchone()[0])


def a_session_with_a_request() -> None:
    runtime = Runtime()
    runtime.ask('"hello"')
    runtime.assemble()


def test_a_dump_is_restored_walked_and_proven(
    tmp_path: Path, scratch: str, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    # A folder without keys, as in a checkout where nothing was served yet.
    settings.CTX_DATA_DIR = tmp_path / "instance"
    a_session_with_a_request()
    dump = tmp_path / "engine.dump"
    seen: list[bool] = []
    check = restore_drill._check

    def checked(command: str, url: str) -> tuple[int, Any]:
        seen.append(exists(scratch))
        return check(command, url)

    monkeypatch.setattr(restore_drill, "_check", checked)
    assert told("backup", str(dump))["bytes"] == dump.stat().st_size > 0
    assert stat.S_IMODE(dump.stat().st_mode) == 0o600
    report = told("restore_drill", str(dump))
    assert report["passed"] is True, report
    assert report["verify_ledger"]["events"] == Event.objects.count() > 0
    assert report["prove_requests"]["requests"] == 1
    assert seen == [True, True] and not exists(scratch)


def test_a_drill_needs_no_template_that_somebody_else_may_be_looking_at(tmp_path: Path) -> None:
    """Postgres copies no template that has a connection, and any tool may have one to template1."""
    a_session_with_a_request()
    dump = tmp_path / "engine.dump"
    told("backup", str(dump))
    address = connection.get_connection_params() | {"dbname": "template1"}
    for ours in ("cursor_factory", "context"):
        address.pop(ours, None)
    with psycopg.connect(**address):
        assert told("restore_drill", str(dump))["passed"] is True


def test_a_drill_finds_what_was_damaged_before_the_dump(tmp_path: Path) -> None:
    a_session_with_a_request()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE event DISABLE TRIGGER USER")
        cursor.execute("UPDATE event SET payload = '{}' WHERE sequence = 1")
        cursor.execute("ALTER TABLE event ENABLE TRIGGER USER")
    dump = tmp_path / "engine.dump"
    told("backup", str(dump))
    with pytest.raises(SystemExit):
        call_command("restore_drill", str(dump), stdout=io.StringIO())
    report = told("restore_drill", str(dump))
    assert report["passed"] is False
    assert report["verify_ledger"]["damaged"][0]["sequence"] == 1


def test_a_file_that_is_no_dump_leaves_nothing_behind(tmp_path: Path, scratch: str) -> None:
    file = tmp_path / "engine.dump"
    file.write_bytes(b"PGDMP but not really")
    with pytest.raises(CommandError, match="pg_restore"):
        call_command("restore_drill", str(file))
    assert not exists(scratch)


def test_no_dump_takes_the_place_of_another_file(tmp_path: Path) -> None:
    file = tmp_path / "engine.dump"
    file.write_text("mine")
    with pytest.raises(CommandError, match="exists already"):
        call_command("backup", str(file))
    assert file.read_text() == "mine"
