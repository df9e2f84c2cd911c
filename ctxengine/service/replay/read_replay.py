"""Replays as they stand: rows of a tenant, and a single step built again to be looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from ctxengine.ledger.models import ReplayCellRow, ReplayRow
from ctxengine.service.access import not_found
from ctxengine.service.specs import Actor


def replay_of(*, actor: Actor, replay_id: UUID) -> ReplayRow:
    """A replay of the actor's tenant.

    Raises:
        ServiceError: 404 when there is none.
    """
    row = ReplayRow.objects.filter(tenant_id=actor.tenant_id, id=replay_id).first()
    if row is None:
        raise not_found("replay")
    return row


def cells_of(row: ReplayRow, *, with_steps: bool = False) -> list[ReplayCellRow]:
    """The cells there are so far, in matrix order."""
    rows = ReplayCellRow.objects.filter(tenant_id=row.tenant_id, replay_id=row.id)
    if not with_steps:
        rows = rows.defer("steps")
    return list(rows.order_by("number"))


def cell_of(row: ReplayRow, number: int) -> ReplayCellRow:
    """One cell with its steps.

    Raises:
        ServiceError: 404 where it is not there, or not there yet.
    """
    cell = ReplayCellRow.objects.filter(
        tenant_id=row.tenant_id, replay_id=row.id, number=number
    ).first()
    if cell is None:
        raise not_found("cell")
    return cell


@dataclass(frozen=True, slots=True)
class ReplayView:
    """A replay as REST shows it."""

    row: ReplayRow
    cells: list[ReplayCellRow]

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        row = self.row
        return {
            "id": str(row.id),
            "session": str(row.session_id),
            "title": row.title,
            "engines": row.engines,
            "models": row.targets,
            "settings": row.settings,
            "job": str(row.job_id) if row.job_id else None,
            "asked_by": row.asked_by,
            "created_at": row.created_at.isoformat(),
            "cells_wanted": len(row.engines) * len(row.targets),
            "cells": [
                {
                    "number": cell.number,
                    "skipped": cell.skipped,
                    "notes": cell.notes,
                    "finished_at": cell.finished_at.isoformat(),
                    **cell.figures,
                }
                for cell in self.cells
            ],
        }
