"""Requests that still have their item list, by age: retention reads no other."""

from __future__ import annotations

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Built beside the writes of processes that go on serving.
    atomic = False

    dependencies = [("ledger", "0011_retention")]

    operations = [
        AddIndexConcurrently(
            model_name="requestrow",
            index=models.Index(
                fields=["tenant_id", "created_at", "id"],
                condition=models.Q(("manifest__has_key", "expired_at"), _negated=True),
                name="request_whole",
            ),
        ),
    ]
