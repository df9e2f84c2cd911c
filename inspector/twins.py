"""What JSON twins hold of rows of tables: named columns, so that a new one never leaves by accident."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from django.db.models import Model
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from ctxengine.ledger.models import AlertRule, ReplayRow

COLUMNS: Mapping[type[Model], tuple[str, ...]] = {
    AlertRule: (
        "id", "name", "measure", "bound", "window_minutes", "enabled", "state", "value", "looked_at", "created_by",
    ),
    ReplayRow: (
        "id", "session_id", "title", "engines", "targets", "settings", "job_id", "asked_by", "created_at",
    ),
}  # fmt: skip
"""Columns of each table whose rows stand in a page's twin."""


def twin_of(request: HttpRequest) -> str:
    """Address of the JSON twin of the page that a request asks for, its query kept; empty where it has none."""
    match = request.resolver_match
    if match is None or match.namespace != "inspector":
        return ""
    route, values = f"inspector:{match.url_name}", dict(match.kwargs)
    json = values | {"twin": "json"}
    for name, given in ((route, json), (f"{route}-twin", values), (f"{route}-twin", json)):
        with suppress(NoReverseMatch):
            address = reverse(name, kwargs=given)
            query = request.GET.urlencode()
            return f"{address}?{query}" if query else address
    return ""


def row_columns(row: Model) -> dict[str, Any]:
    """A row's columns that twins may hold.

    Raises:
        TypeError: nobody said which columns of this table a twin may hold.
    """
    names = COLUMNS.get(type(row))
    if names is None:
        raise TypeError(
            f"say in inspector/twins.py which columns of {type(row).__name__} a twin holds"
        )
    return {name: getattr(row, name) for name in names}
