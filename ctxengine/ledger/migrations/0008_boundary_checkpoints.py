"""Durable checkpoints of the boundary engine (boundary spec, Persistence and validation)."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("ledger", "0007_turn_cards")]

    operations: list[migrations.operations.base.Operation] = []
