"""Attempts, limits and lives of keys and people."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("ledger", "0010_console")]

    operations: list[migrations.operations.base.Operation] = []
