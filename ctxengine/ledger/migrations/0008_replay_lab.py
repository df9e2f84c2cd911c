"""Replays of the lab and their figures."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("ledger", "0007_turn_cards")]

    operations = [
        migrations.CreateModel(
            name="ReplayRow",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("tenant_id", models.UUIDField()),
                ("id", models.UUIDField()),
                ("session_id", models.UUIDField()),
                ("title", models.TextField(blank=True, default="")),
                ("engines", models.JSONField(default=list)),
                ("targets", models.JSONField(default=list)),
                ("settings", models.JSONField(default=dict)),
                ("job_id", models.UUIDField(blank=True, null=True)),
                ("asked_by", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "db_table": "replay",
                "indexes": [
                    models.Index(
                        fields=["tenant_id", "-created_at", "id"],
                        name="replay_recent",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ReplayCellRow",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "replay_id",
                        "number",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("tenant_id", models.UUIDField()),
                ("replay_id", models.UUIDField()),
                ("number", models.IntegerField()),
                ("engine", models.CharField(max_length=48)),
                ("provider", models.CharField(max_length=48)),
                ("model", models.CharField(max_length=200)),
                ("figures", models.JSONField(default=dict)),
                ("steps", models.JSONField(default=list)),
                ("notes", models.JSONField(default=list)),
                ("skipped", models.TextField(blank=True, default="")),
                ("finished_at", models.DateTimeField()),
            ],
            options={
                "db_table": "replay_cell",
            },
        ),
    ]
