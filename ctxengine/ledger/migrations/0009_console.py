"""The search index, saved views, alert rules and what they found."""

from __future__ import annotations

import django.contrib.postgres.indexes
import django.contrib.postgres.search
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("ledger", "0008_replay_lab")]

    operations = [
        migrations.CreateModel(
            name="SearchHash",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "start",
                        "session_id",
                        "sequence",
                        "ordinal",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("tenant_id", models.UUIDField()),
                ("start", models.BigIntegerField()),
                ("session_id", models.UUIDField()),
                ("sequence", models.BigIntegerField()),
                ("ordinal", models.IntegerField()),
            ],
            options={
                "db_table": "search_hash",
            },
        ),
        migrations.CreateModel(
            name="SearchHead",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "session_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("tenant_id", models.UUIDField()),
                ("session_id", models.UUIDField()),
                ("through", models.BigIntegerField()),
            ],
            options={
                "db_table": "search_head",
            },
        ),
        migrations.CreateModel(
            name="AlertChange",
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
                ("rule_id", models.UUIDField()),
                ("rule_name", models.CharField(max_length=80)),
                ("state", models.CharField(max_length=8)),
                ("value", models.FloatField(blank=True, null=True)),
                ("bound", models.FloatField()),
                ("at", models.DateTimeField()),
                ("told", models.CharField(default="nobody", max_length=16)),
                ("detail", models.TextField(blank=True, default="")),
            ],
            options={
                "db_table": "alert_change",
                "indexes": [models.Index(fields=["tenant_id", "-at"], name="alert_recent")],
            },
        ),
        migrations.CreateModel(
            name="AlertRule",
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
                ("name", models.CharField(max_length=80)),
                ("measure", models.CharField(max_length=40)),
                ("bound", models.FloatField()),
                ("window_minutes", models.IntegerField()),
                ("webhook", models.TextField(blank=True, default="")),
                ("enabled", models.BooleanField(default=True)),
                ("state", models.CharField(default="quiet", max_length=8)),
                ("value", models.FloatField(blank=True, null=True)),
                ("looked_at", models.DateTimeField(blank=True, null=True)),
                ("created_by", models.TextField()),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "db_table": "alert_rule",
                "constraints": [
                    models.UniqueConstraint(fields=("tenant_id", "name"), name="alert_rule_name")
                ],
            },
        ),
        migrations.CreateModel(
            name="SavedView",
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
                ("page", models.CharField(max_length=16)),
                ("name", models.CharField(max_length=80)),
                ("query", models.TextField(blank=True, default="")),
                ("owner", models.TextField()),
                ("shared", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "db_table": "saved_view",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant_id", "owner", "page", "name"), name="saved_view_name"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SearchEntry",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "session_id",
                        "sequence",
                        "ordinal",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("tenant_id", models.UUIDField()),
                ("session_id", models.UUIDField()),
                ("sequence", models.BigIntegerField()),
                ("ordinal", models.IntegerField()),
                ("id", models.UUIDField()),
                ("kind", models.CharField(max_length=24)),
                ("role", models.CharField(max_length=12)),
                ("row", models.SmallIntegerField()),
                ("trust", models.CharField(max_length=32)),
                ("name", models.TextField(blank=True, default="")),
                ("text", models.TextField(blank=True, default="")),
                ("cut", models.BooleanField(default=False)),
                ("document", django.contrib.postgres.search.SearchVectorField()),
                ("at", models.DateTimeField()),
            ],
            options={
                "db_table": "search_entry",
                "indexes": [
                    django.contrib.postgres.indexes.GinIndex(
                        fields=["document"], name="search_words"
                    ),
                    models.Index(fields=["tenant_id", "-at", "-id"], name="search_recent"),
                ],
            },
        ),
    ]
