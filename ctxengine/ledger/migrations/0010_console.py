"""Saved views, alerts and the site's own switches."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("ledger", "0009_replay_lab")]

    operations: list[migrations.operations.base.Operation] = []
