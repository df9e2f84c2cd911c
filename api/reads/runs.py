"""Runs as REST shows them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from api.problems import Problem
from ctxengine.ledger.models import RunRow


def run_facts(tenant_id: UUID, run_id: str) -> dict[str, Any]:
    """What was answered when the run was opened. One query.

    Raises:
        Problem: `not_found`.
    """
    row = RunRow.objects.filter(tenant_id=tenant_id, id=run_id).first()
    if row is None:
        raise Problem("not_found", f"There is no run {run_id} for this key.")
    return {"id": row.id, "number": row.number, "seed_event_sequence": row.seed_event_sequence}
