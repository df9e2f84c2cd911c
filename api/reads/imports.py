"""Imports as REST shows them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from api.problems import Problem
from ctxengine.ledger.models import ImportRow

_FIELDS = (
    "sha256",
    "name",
    "format",
    "sessions",
    "items_in",
    "items_kept",
    "report",
    "created_at",
)


def import_facts(tenant_id: UUID, sha256: str) -> dict[str, Any]:
    """One import with its report. One query.

    Raises:
        Problem: `not_found`.
    """
    row = ImportRow.objects.filter(tenant_id=tenant_id, sha256=sha256).values(*_FIELDS).first()
    if row is None:
        raise Problem("not_found", f"There is no import {sha256} for this key.")
    return {**row, "items_set_aside": row["items_in"] - row["items_kept"]}
