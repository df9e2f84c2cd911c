"""A write that need not wait for the disk still says what it wrote, and changes nothing for the writes behind it."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest
from django.db import connection

from ctxengine.ledger.inserts import changed, laid
from ctxengine.ledger.models import Idempotency
from tests.cast import new_actor

pytestmark = pytest.mark.django_db(transaction=True)


def waits() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW synchronous_commit")
        return str(cursor.fetchone()[0])


def test_rows_are_counted_outside_a_transaction_and_the_next_commit_waits_again() -> None:
    before = waits()
    row = Idempotency(
        tenant_id=new_actor().tenant_id,
        key=uuid.uuid4().hex,
        operation="POST /",
        body_sha256="0" * 64,
        resource={},
        created_at=datetime.now(UTC),
    )
    assert laid(row, durable=False) and not laid(row, durable=False)
    update = "UPDATE idempotency SET status = %s WHERE key = %s"
    assert changed(update, [200, row.key], durable=False) == 1
    assert changed(update, [200, "none"], durable=False) == 0
    assert waits() == before
    assert Idempotency.objects.get(key=row.key).status == 200
