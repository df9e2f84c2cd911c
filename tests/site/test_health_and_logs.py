"""The health check and the log lines."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any
from unittest import mock

import pytest
from django.db import OperationalError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client, RequestFactory

from ctxengine.site import health
from ctxengine.site.health import healthz
from ctxengine.site.logs import JsonFormatter


@pytest.mark.django_db
def test_the_health_check_asks_the_database(client: Client) -> None:
    answer = client.get("/healthz")
    assert answer.status_code == 200
    assert answer.json() == {"status": "ok", "broker": "none", "workers": 0}
    assert "no-store" in answer.headers["Cache-Control"]


@pytest.mark.django_db
def test_a_dead_broker_is_said_and_makes_no_web_process_unhealthy(
    client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CTX_JOB_SENDER = "workers.send.send_job"
    monkeypatch.setattr("workers.send.waiting", lambda _: None)
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()["broker"]) == (200, "unreachable")


def test_the_health_check_says_when_the_database_is_away() -> None:
    with mock.patch.object(connection, "cursor", side_effect=OperationalError("host and password")):
        answer = healthz(RequestFactory().get("/healthz"))
    assert answer.status_code == 503
    assert json.loads(answer.content) == {"status": "unavailable", "part": "database"}


@pytest.mark.django_db
def test_new_code_on_an_old_schema_is_not_sent_anything(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Renewed before `migrate` has run, or beside it: the process waits, and serves once the schema has come (decision 13)."""
    monkeypatch.setattr(health, "_schema", health._Schema())
    newest = max(name for app, name in MigrationLoader(None).graph.nodes if app == "ledger")
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied("ledger", newest)
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()) == (
        503,
        {"status": "unavailable", "part": "schema"},
    )
    assert client.get("/livez").status_code == 200
    recorder.record_applied("ledger", newest)
    assert client.get("/healthz").status_code == 200
    # Old code on a newer schema serves: it knows nothing of what came after it.
    recorder.record_applied("ledger", "9999_from_the_next_version")
    monkeypatch.setattr(health, "_schema", health._Schema())
    assert client.get("/healthz").status_code == 200


@pytest.mark.django_db
def test_every_page_forbids_foreign_content(client: Client) -> None:
    policy = client.get("/healthz").headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


def test_an_error_in_the_log_carries_no_values() -> None:
    try:
        raise ValueError("duplicate key\nDETAIL: Key (body)=(a customer's words)")
    except ValueError:
        record = logging.LogRecord(
            "x", logging.ERROR, __file__, 1, "failed: %s", ("one\ntwo",), sys.exc_info()
        )
    line = JsonFormatter().format(record)
    assert "customer" not in line
    fields = json.loads(line)
    assert (fields["error"], fields["error_message"]) == ("ValueError", "duplicate key")
    assert fields["message"] == "failed: one"
    assert fields["frames"][-1].endswith("test_an_error_in_the_log_carries_no_values")


def test_long_messages_are_cut_visibly() -> None:
    record = logging.LogRecord("x", logging.INFO, __file__, 1, "a" * 5_000, (), None)
    message = json.loads(JsonFormatter().format(record))["message"]
    assert message.endswith("…")
    assert len(message) == 301
