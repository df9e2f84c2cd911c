"""Defaults in the database for columns that were added later, so that the code of the version before can still insert."""

from __future__ import annotations

from django.db import migrations, models
from django.db.models import Value


def _empty() -> models.JSONField:
    return models.JSONField(default=dict, db_default=Value({}, models.JSONField()))


class Migration(migrations.Migration):
    dependencies = [("ledger", "0009_console")]

    operations = [
        migrations.AlterField(model_name="planrow", name="cost_model", field=_empty()),
        migrations.AlterField(model_name="planrow", name="measured", field=_empty()),
        migrations.AlterField(model_name="requestrow", name="verdict", field=_empty()),
    ]
