"""What closed turns are found by (capacity spec 4 and 10). Their cards are bodies of `turn.closed` events."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("ledger", "0006_capacity_profiles")]

    operations: list[migrations.operations.base.Operation] = [
        migrations.CreateModel(
            name="IndexedTurn",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "session_id",
                        "number",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("tenant_id", models.UUIDField()),
                ("session_id", models.UUIDField()),
                ("number", models.IntegerField()),
                ("length", models.IntegerField()),
                ("embedding", models.BinaryField(default=b"")),
                ("embedder", models.CharField(blank=True, default="", max_length=128)),
            ],
            options={"db_table": "indexed_turn"},
        ),
        migrations.CreateModel(
            name="Posting",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "session_id",
                        "term",
                        "number",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("tenant_id", models.UUIDField()),
                ("session_id", models.UUIDField()),
                ("term", models.CharField(max_length=64)),
                ("number", models.IntegerField()),
                ("count", models.IntegerField()),
            ],
            options={"db_table": "posting"},
        ),
        migrations.AddField(
            model_name="requestrow",
            name="body_chars",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
    ]
