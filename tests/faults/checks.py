"""What is looked at after a fault, over the database that Django speaks to. Each check says to the page that it was made."""

from __future__ import annotations

from django.db import connection
from django.db.models.functions import Now

from ctxengine.ledger.models import Idempotency, Job, JobState, SessionRow
from ctxengine.service.prove import prove_all
from ctxengine.service.verify import verify_chains
from tests.faults.page import Check
from tests.faults.stage import eventually

_WRONG_COUNTS = {
    "events": """
        SELECT s.id, s.last_sequence, count(e.sequence), max(e.sequence) FROM session s
        LEFT JOIN event e ON e.tenant_id = s.tenant_id AND e.session_id = s.id
        GROUP BY s.tenant_id, s.id
        HAVING count(e.sequence) <> s.last_sequence OR coalesce(max(e.sequence), 0) <> s.last_sequence
    """,
    "items of sessions": """
        SELECT s.id, s.items, count(i.sequence) FROM session s
        LEFT JOIN item i ON i.tenant_id = s.tenant_id AND i.session_id = s.id
        GROUP BY s.tenant_id, s.id HAVING count(i.sequence) <> s.items
    """,
    "units of sessions": """
        SELECT s.id FROM session s LEFT JOIN unit u ON u.tenant_id = s.tenant_id AND u.session_id = s.id
        GROUP BY s.tenant_id, s.id
        HAVING count(u.sequence) <> s.units OR coalesce(sum(u.tokens), 0) <> s.tokens
            OR coalesce(sum(u.pointer_tokens), 0) <> s.pointer_tokens
            OR coalesce(sum(u.result_tokens), 0) <> s.result_tokens
    """,
    "running sums": """
        SELECT * FROM (
            SELECT session_id, sequence, before_tokens, index,
                coalesce(sum(tokens) OVER earlier, 0) AS tokens_before,
                row_number() OVER (PARTITION BY tenant_id, session_id ORDER BY sequence) - 1 AS place
            FROM unit
            WINDOW earlier AS (
                PARTITION BY tenant_id, session_id ORDER BY sequence
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            )
        ) summed WHERE before_tokens <> tokens_before OR index <> place
    """,
    "items of units": """
        SELECT u.session_id, u.sequence, u.tokens, sum(i.tokens) FROM unit u
        JOIN item i ON i.tenant_id = u.tenant_id AND i.session_id = u.session_id AND i.unit_sequence = u.sequence
        GROUP BY u.tenant_id, u.session_id, u.sequence, u.tokens HAVING sum(i.tokens) <> u.tokens
    """,
    "bodies without an event": """
        SELECT b.session_id, b.id FROM body b LEFT JOIN event e
        ON e.tenant_id = b.tenant_id AND e.session_id = b.session_id AND e.body_id = b.id
        WHERE e.body_id IS NULL AND NOT EXISTS (
            SELECT 1 FROM plan p WHERE p.tenant_id = b.tenant_id AND p.session_id = b.session_id
            AND p.redacted_body_id = b.id
        )
    """,
    "requests of sessions": """
        SELECT s.id, s.requests, count(r.id) FROM session s
        LEFT JOIN request r ON r.tenant_id = s.tenant_id AND r.session_id = s.id
        GROUP BY s.tenant_id, s.id HAVING count(r.id) <> s.requests
    """,
    "runs of sessions": """
        SELECT s.id, s.runs, count(r.id) FROM session s
        LEFT JOIN run r ON r.tenant_id = s.tenant_id AND r.session_id = s.id
        GROUP BY s.tenant_id, s.id HAVING count(r.id) <> s.runs
    """,
}
"""Questions whose answer is nothing."""


def chains_verify() -> None:
    """Every chain is whole, and there is one."""
    reports = list(verify_chains())
    assert sum(report.events for report in reports) > 0, "there is nothing to verify"
    damaged = [report for report in reports if report.problem is not None]
    assert not damaged, damaged
    Check.CHAIN.passed()


def counts_add_up() -> None:
    """What is derived from the events is what they say, in sums and in numbers of rows."""
    assert SessionRow.objects.exists()
    for what, question in _WRONG_COUNTS.items():
        with connection.cursor() as cursor:
            cursor.execute(question)
            wrong = cursor.fetchall()
        assert not wrong, (what, wrong[:5])
    Check.COUNTS.passed()


def requests_are_proven() -> None:
    """Every recorded request rebuilds to its hash, and there is one."""
    proved = list(prove_all())
    assert proved
    differing = [replay for replay in proved if not replay.identical]
    assert not differing, differing
    Check.PROOF.passed()


def no_job_is_left() -> None:
    """Every job has ended, and no worker that is gone holds one."""
    unfinished = Job.objects.filter(state__in=(JobState.QUEUED, JobState.RUNNING))
    held = Job.objects.filter(lease_until__lt=Now())
    eventually(
        lambda: not unfinished.exists() and not held.exists(),
        "the end of all jobs",
        lambda: str(list(unfinished.values_list("kind", "state", "attempts", "log"))),
    )
    Check.JOBS.passed()


def no_call_is_left_open() -> None:
    """No write is still marked as being at work."""
    assert list(Idempotency.objects.filter(status=None).values_list("operation", "key")) == []


def all_is_whole() -> None:
    """Chain, counts and proofs."""
    chains_verify()
    counts_add_up()
    requests_are_proven()
