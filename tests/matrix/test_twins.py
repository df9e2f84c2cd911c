"""Every list answers as JSON and CSV with the same rows: one of each, and every column that both have holds the same."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from ctxengine.ledger.models import Role
from tests.factories import make_person, pressed_session
from tests.matrix.test_console_access import World, client
from tests.matrix.test_role_matrix import tenant_patterns

pytestmark = pytest.mark.django_db

DOCUMENTS = {"metrics"}
"""Their twins are tables of one document, compared in tests/inspector/test_page_metrics.py."""


def rows_of(name: str, data: Any) -> list[dict[str, Any]]:
    """The rows of a JSON twin; a few lists stand inside a page's other facts."""
    if name == "session-plan":
        return [entry["tool"] for group in data["groups"] for entry in group["tools"]]
    if name == "request-items":
        return [{**item, **item["line"], "form": item["form"]} for item in data["items"]]
    if name == "imports":
        return list(data["imports"])
    return [{**row, **row.get("line", {})} for row in data]


def as_cell(value: Any) -> str:
    """A JSON value as a spreadsheet holds it."""
    if value is None:
        return ""
    text = str(value)
    return "'" + text if isinstance(value, str) and text[:1] in ("=", "+", "-", "@") else text


def test_the_twins_of_every_list_hold_the_same_rows() -> None:
    world = World()
    pressed_session(world.tenant)
    admin = client(make_person(world.tenant, Role.ADMIN))
    wrong: dict[str, Any] = {}
    compared = 0
    for pattern in tenant_patterns():
        name = str(pattern.name)
        if "list_twin" not in str(pattern.pattern) or name in DOCUMENTS:
            continue
        path, _, query = world.address(pattern).partition("?")
        told = {
            kind: admin.get(f"{path.rstrip('/')}.{kind}?{query}").getvalue().decode()
            for kind in ("json", "csv")
        }
        rows = rows_of(name, json.loads(told["json"]))
        lines = list(csv.DictReader(io.StringIO(told["csv"])))
        if name == "policies":  # a line for each figure there, a row for each policy here
            lines = list({(line["name"], line["version"]): line for line in lines}.values())
        if len(rows) != len(lines):
            wrong[name] = (len(rows), len(lines))
            continue
        for row, line in zip(rows, lines, strict=True):
            for column in line.keys() & row.keys():
                if isinstance(row[column], list | dict):
                    continue
                compared += 1
                if as_cell(row[column]) != line[column]:
                    wrong[f"{name}.{column}"] = (row[column], line[column])
    assert wrong == {}
    assert compared > 300
