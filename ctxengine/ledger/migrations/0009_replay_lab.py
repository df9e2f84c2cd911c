"""Replays of the lab and their figures."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("ledger", "0008_boundary_checkpoints")]

    operations: list[migrations.operations.base.Operation] = []
