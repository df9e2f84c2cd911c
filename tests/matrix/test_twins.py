"""Every page of data answers as JSON, every list as CSV too: with the same rows, and every column that both have alike."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from typing import Any

import pytest
from django.urls import URLPattern

from ctxengine.ledger.models import Role
from tests.factories import make_person, pressed_session
from tests.matrix.world import POSTS, a_world, client, tenant_patterns

pytestmark = pytest.mark.django_db

_ALTERNATE = re.compile(r'<link rel="alternate" type="application/json" href="([^"]*)">')
DOCUMENTS = {"metrics"}
"""Their twins are tables of one document, compared in tests/inspector/test_page_metrics.py."""


def rows_of(name: str, data: Any) -> list[dict[str, Any]]:
    """The rows of a JSON twin; a few lists stand inside a page's other facts."""
    if name == "session-plan":
        return [entry["tool"] for group in data["groups"] for entry in group["tools"]]
    if name == "request-items":
        return [{**item, **item["line"], "form": item["form"]} for item in data["items"]]
    return [{**row, **row.get("line", {})} for row in data]


def as_cell(value: Any) -> str:
    """A JSON value as a spreadsheet holds it."""
    if value is None:
        return ""
    text = str(value)
    return "'" + text if isinstance(value, str) and text[:1] in ("=", "+", "-", "@") else text


WITHOUT_TWIN: dict[str, str] = {
    **dict.fromkeys(("jump", "diff-pick"), "leads on"),
    **dict.fromkeys(
        (
            "rotate", "tool-act", "lift-constraint", "compact-now", "mark", "undo-compaction", "undo-checkpoint",
            "probe",
        ),
        "a form before an act; the act is an event and a line of the audit log",
    ),
    **dict.fromkeys(
        ("event-raw", "request-raw", "request-curl", "request-ticket", "request-markdown", "lab-step-raw"), "a file"
    ),
    **dict.fromkeys(("tour", "keys", "styleguide"), "the same words for everybody"),
}  # fmt: skip
"""Pages without data of their own, each with the reason. Parts of pages (`f/`) and addresses of posts are none."""


def data_pages() -> list[URLPattern]:
    """Every address that shows data and is nobody's twin."""
    return [
        pattern
        for pattern in tenant_patterns()
        if pattern.name not in WITHOUT_TWIN
        and pattern.name not in POSTS
        and "/f/" not in str(pattern.pattern)
        and not str(pattern.name).endswith("-twin")
    ]


def test_every_page_of_data_leads_to_its_json_twin() -> None:
    world = a_world()
    admin = client(make_person(world.tenant, Role.ADMIN))
    wrong = {}
    for pattern in data_pages():
        page = admin.get(world.address(pattern)).content.decode()
        link = _ALTERNATE.search(page)
        if link is None:
            wrong[pattern.name] = "no link"
            continue
        twin = admin.get(html.unescape(link[1]))
        told = twin.status_code, twin["Content-Type"]
        if told != (200, "application/json"):
            wrong[pattern.name] = told
        json.loads(twin.getvalue())
    assert wrong == {}, "give it a twin, or say in WITHOUT_TWIN why it has none"


def test_a_part_of_a_page_asks_by_its_query_for_the_same_twin() -> None:
    world = a_world()
    admin = client(make_person(world.tenant, Role.ADMIN))
    page = admin.get(f"/t/{world.tenant.slug}/requests/?model=x%22%3E%E2%80%AE&size=50")
    link = _ALTERNATE.search(page.content.decode())
    assert link is not None
    assert link[1].endswith("requests.json?model=x%22%3E%E2%80%AE&amp;size=50")


def test_the_twins_of_every_list_hold_the_same_rows() -> None:
    world = a_world()
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
