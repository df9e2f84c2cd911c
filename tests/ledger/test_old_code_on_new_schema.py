"""The schema goes first, then the code: every version's code can write to every later schema (docs/decisions/0013)."""

from __future__ import annotations

import itertools
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.search import SearchVectorField
from django.db import connection, migrations, models, transaction
from django.db.migrations.loader import MigrationLoader

pytestmark = pytest.mark.django_db

LOADER = MigrationLoader(None)
OURS = sorted(name for app, name in LOADER.graph.nodes if app == "ledger")
ADDS = (
    migrations.CreateModel, migrations.AddField, migrations.AddIndex, migrations.AddConstraint, migrations.RunSQL,
    migrations.RunPython, migrations.AlterField,
)  # fmt: skip
_numbers = itertools.count(1)


@pytest.mark.parametrize("name", OURS)
def test_a_migration_only_adds(name: str) -> None:
    migration = LOADER.get_migration("ledger", name)
    for operation in migration.operations:
        assert isinstance(operation, ADDS), (name, operation)


def filled(field: models.Field[Any, Any]) -> Any:
    number = next(_numbers)
    match field:
        case ArrayField():
            return []
        case models.UUIDField():
            return uuid.uuid4()
        case models.JSONField():
            return {}
        case models.BooleanField():
            return False
        case models.DateTimeField():
            return datetime(2026, 1, 1, tzinfo=UTC)
        case SearchVectorField():
            return ""
        case models.BinaryField():
            return b""
        case models.DecimalField() | models.FloatField() | models.IntegerField():
            return number
        case models.CharField() | models.TextField():
            return f"{number}"[: field.max_length or 20]
        case _:
            raise AssertionError(f"Say what stands in a {type(field).__name__}.")


def row_of(model: type[models.Model]) -> models.Model:
    values = {}
    for field in model._meta.local_concrete_fields:
        if (
            field.generated
            or field.null
            or field.has_default()
            or field.db_default != models.NOT_PROVIDED
        ):
            continue
        if isinstance(field, models.ForeignKey):
            values[field.attname] = row_of(field.related_model).pk
        elif not isinstance(field, models.AutoField):
            values[field.attname] = filled(field)
    row = model(**values)
    row.save(force_insert=True)
    return row


@pytest.mark.parametrize("name", OURS[:-1])
def test_code_of_this_version_inserts_into_the_newest_schema(name: str) -> None:
    state = LOADER.project_state(("ledger", name))
    apps = state.apps
    checked = 0
    with connection.constraint_checks_disabled():
        for model in apps.get_app_config("ledger").get_models():
            with transaction.atomic():
                row_of(model)
            checked += 1
    assert checked > 10
