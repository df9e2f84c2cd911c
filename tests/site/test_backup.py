"""A dump can be lived on: what was written is restored beside, walked, proven, and removed again."""

from __future__ import annotations

import io
import json
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from ctxengine.ledger.models import Event
from tests.cast import Runtime

pytestmark = pytest.mark.django_db(transaction=True)


def told(*words: str) -> dict[str, Any]:
    """What a command prints, also where it ends non-zero."""
    out = io.StringIO()
    with suppress(SystemExit):
        call_command(*words, "--json", stdout=out)
    said: dict[str, Any] = json.loads(out.getvalue())
    return said


def databases() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT datname FROM pg_database")
        return {name for (name,) in cursor.fetchall()}


def a_session_with_a_request() -> None:
    runtime = Runtime()
    runtime.ask('"hello"')
    runtime.assemble()


def test_a_dump_is_restored_walked_and_proven(tmp_path: Path) -> None:
    a_session_with_a_request()
    dump, before = tmp_path / "engine.dump", databases()
    assert told("backup", str(dump))["bytes"] == dump.stat().st_size > 0
    assert stat.S_IMODE(dump.stat().st_mode) == 0o600
    report = told("restore_drill", str(dump))
    assert report["passed"] is True, report
    assert report["verify_ledger"]["events"] == Event.objects.count() > 0
    assert report["prove_requests"]["requests"] == 1
    assert databases() == before


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


def test_a_file_that_is_no_dump_leaves_nothing_behind(tmp_path: Path) -> None:
    file, before = tmp_path / "engine.dump", databases()
    file.write_bytes(b"PGDMP but not really")
    with pytest.raises(CommandError, match="pg_restore"):
        call_command("restore_drill", str(file))
    assert databases() == before


def test_no_dump_takes_the_place_of_another_file(tmp_path: Path) -> None:
    file = tmp_path / "engine.dump"
    file.write_text("mine")
    with pytest.raises(CommandError, match="exists already"):
        call_command("backup", str(file))
    assert file.read_text() == "mine"
