"""Turn cards, what turns are found by, and presentations (capacity spec 10)."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("ledger", "0006_capacity_profiles")]

    operations: list[migrations.operations.base.Operation] = []
