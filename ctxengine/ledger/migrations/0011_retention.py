"""How long a tenant keeps what."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("ledger", "0010_column_defaults")]

    operations = [
        migrations.CreateModel(
            name="RetentionRule",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "kind",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("tenant_id", models.UUIDField()),
                ("kind", models.CharField(max_length=24)),
                ("days", models.PositiveIntegerField()),
                ("set_by", models.TextField()),
                ("set_at", models.DateTimeField()),
            ],
            options={
                "db_table": "retention_rule",
            },
        ),
    ]
