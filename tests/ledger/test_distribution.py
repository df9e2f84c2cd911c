"""What docs/scale.md promises of the schema: it can be distributed by tenant and partitioned by session as it is."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.db import connection, models

pytestmark = pytest.mark.django_db

REFERENCE = {"tenant", "membership", "api_key"}
"""Small tables that every node has whole: a key is looked up before its tenant is known."""
BY_SESSION = ("event", "body", "item", "unit", "rendering")
"""The tables that grow with every step."""


def ours() -> list[type[models.Model]]:
    return [model for model in apps.get_app_config("ledger").get_models() if model._meta.managed]


def distributed() -> list[type[models.Model]]:
    return [model for model in ours() if model._meta.db_table not in REFERENCE]


def unique_indexes(table: str) -> dict[str, list[str]]:
    """Columns of every unique index, primary key included."""
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, table)
    return {name: told["columns"] for name, told in found.items() if told["unique"]}


def test_every_table_of_a_tenant_can_be_distributed_by_it() -> None:
    assert len(distributed()) > 20
    for model in distributed():
        table = model._meta.db_table
        for name, columns in unique_indexes(table).items():
            assert columns[0] == "tenant_id", (table, name, columns)


def test_no_foreign_key_leads_from_one_distributed_table_to_another() -> None:
    """Between nodes there are none; those that there are lead to tables that every node has."""
    for model in distributed():
        for field in model._meta.local_fields:
            if isinstance(field, models.ForeignKey):
                assert field.related_model._meta.db_table in REFERENCE, (model, field)


@pytest.mark.parametrize("table", BY_SESSION)
def test_what_grows_can_be_partitioned_by_session_with_its_keys_and_indexes(table: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f'CREATE TABLE parted (LIKE "{table}" INCLUDING ALL) PARTITION BY HASH (session_id)'
        )
        for part in range(2):
            cursor.execute(
                f"CREATE TABLE parted_{part} PARTITION OF parted FOR VALUES WITH (MODULUS 2, REMAINDER {part})"
            )
        cursor.execute(f'INSERT INTO parted SELECT * FROM "{table}"')
        cursor.execute(
            "EXPLAIN SELECT * FROM parted WHERE tenant_id = gen_random_uuid() AND session_id ="
            " '00000000-0000-0000-0000-000000000007'"
        )
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert sum(f"parted_{part}" in plan for part in range(2)) == 1, plan
