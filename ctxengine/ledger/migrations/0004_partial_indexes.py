"""Small indexes over what is rare: erased bodies, and units that still wait for a result."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0003_frozen_prefix"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="body",
            index=models.Index(
                condition=models.Q(("erased_at__isnull", False)),
                fields=["tenant_id", "session_id"],
                name="body_erased",
            ),
        ),
        migrations.AddIndex(
            model_name="unitrow",
            index=models.Index(
                condition=models.Q(("open_calls__gt", 0)),
                fields=["tenant_id", "session_id", "sequence"],
                name="unit_open",
            ),
        ),
    ]
